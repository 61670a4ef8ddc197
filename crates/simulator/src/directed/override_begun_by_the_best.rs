//! The node with the best log has begun an override that never took effect, and is elected without it (rule 11).
//!
//! The nodes have lost each other. An operator makes n2 primary, which n1 promises; n2 has the view of n1 and n2 in its
//! log, and n1 does not get it any more. All are restarted, and n2 is elected: n1's promise proves that the view was not
//! made. Then n1 dies. The others go on without it.

use trireme_group::Preference;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::UnmadeViewKept],
    plan: |seed| {
        let mut plan = recovering(5, seed);
        plan.suspect_timeout_ms = 1_000;
        for node in [N1, N3, N4, N5] {
            plan.nodes[node].preference = Preference::Never;
        }
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let (all, rest) = ([N1, N2, N3, N4, N5], [N2, N3, N4, N5]);
    stage.until("n2 leads", |s| s.is_leading(N2))?;
    stage.cut(&[N2], &[N1, N3, N4, N5]);
    let end = stage.end(N2);
    stage.write(N2, &[row(1)]);
    stage.until("n2 has an entry more", |s| s.end(N2) > end)?;
    stage.scatter(&all)?;
    stage.begin_override(N2, N1)?;
    for node in all {
        stage.crash(node, false);
    }
    stage.join(&all, &all);
    for node in rest {
        stage.start(node);
    }
    // Without n1 they cannot know that the view was not made.
    stage.pass_ms(3_000);
    stage.start(N1);
    stage.until("n2 is elected", |s| s.is_leading(N2))?;
    stage.crash(N1, false);
    let served = stage.until("the others serve", |s| s.serve(&rest)).is_ok();
    stage.must("they go on without n1", served);
    Ok(())
}
