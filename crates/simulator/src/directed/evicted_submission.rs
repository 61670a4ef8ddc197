//! A write-set arrives after its origin was removed (rule 9).
//!
//! n3 sends a write-set that is delayed on the way, and is stopped. The others remove n3; then the write-set arrives.
//! Its origin is not in the view: the write-set must have no effect anywhere.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::EvictedDelivered],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.suspect_timeout_ms = 1_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let view = stage.view(N1);
    stage.cut(&[N3], &[N1, N2]);
    let x = stage.write(N3, &[row(1)]);
    stage.pass_ms(10);
    stage.pause(N3);
    stage.until("n3 is removed", |s| s.view(N1) > view && s.view(N2) > view)?;
    stage.check("X was not told", stage.told(x).is_none())?;
    stage.heal(&[N3], &[N1, N2]);
    stage.pass_ms(400);
    let y = stage.write(N1, &[row(1)]);
    stage.until("the others go on", |s| s.acknowledged(y))?;
    stage.check("without X", !stage.has_applied(N1, x))
}
