//! Two operators begin an override each, and all nodes lose power before either takes effect (rules 4, 11).
//!
//! The nodes have lost each other. An operator makes n2 primary, which n1 promises; n2 has the view of n1 and n2 in its
//! log, and n1 does not get it any more. The same happens to n3 with n1. All come back from a power loss: n1 knows of
//! neither view, so neither was made, and neither counts. The cluster goes on by itself.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, hasty};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::UnmadeViewCounts],
    plan: |seed| hasty(5, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3, N4, N5];
    stage.scatter(&all)?;
    for founder in [N2, N3] {
        stage.begin_override(founder, N1)?;
    }
    for node in all {
        stage.lose_power(node);
    }
    stage.join(&all, &all);
    for node in all {
        stage.start(node);
    }
    let alone = stage.until("they serve", |s| s.serve(&all)).is_ok();
    stage.must("they go on by themselves", alone);
    Ok(())
}
