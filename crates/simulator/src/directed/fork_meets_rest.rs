//! An operator made a part primary, the rest has formed again by itself, and the two meet (rule 11).
//!
//! All five nodes lose each other. `pc.bootstrap` makes n1 and n2 primary. n3, n4 and n5 find each other, are a
//! majority of the last view, and go on. Both histories have the same uuid and the same seqnos. When they meet, the
//! nodes that do not know the forced view yield and get the other part's database.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OverridesIgnored, Mutant::ForkedDatabaseUsed],
    plan: |seed| {
        let mut plan = cluster(5, seed);
        plan.suspect_timeout_ms = 1_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let all = [N1, N2, N3, N4, N5];
    stage.force_apart(&all)?;
    let primary = |nodes: [usize; 2]| {
        move |s: &Stage| {
            nodes
                .iter()
                .all(|n| s.component_state(*n) == ComponentState::Primary)
        }
    };
    stage.until("n1 and n2 are primary", primary([N1, N2]))?;
    let x = stage.write(N1, &[row(1)]);
    stage.until("they go on", |s| s.acknowledged(x))?;
    stage.join(&[N3, N4, N5], &[N3, N4, N5]);
    stage.until("the rest is primary", primary([N3, N4]))?;
    let e = stage.takeover(&[N3, N4, N5])?;
    let y = stage.write(e, &[row(1)]);
    stage.until("the rest goes on", |s| s.acknowledged(y))?;
    stage.join(&all, &all);
    stage.until("the rest yields", |s| s.holds(e, y).is_none())?;
    Ok(())
}
