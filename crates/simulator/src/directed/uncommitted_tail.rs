//! The end of a log must not be applied before it is committed (rules 1, 6).
//!
//! n1's X reaches only n5. The other three elect a leader and go on without X. n5 comes back and must drop X, which
//! is impossible if X is in its database.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::UncommittedDelivered],
    plan: |seed| {
        let mut plan = cluster(5, seed);
        plan.suspect_timeout_ms = 60_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.cut(&[N1, N5], &[N2, N3, N4]);
    let x = stage.write(N1, &[row(1)]);
    stage.until("n5 has X", |s| s.holds(N5, x).is_some())?;
    stage.part(&[N1, N5], &[N2, N3, N4]);
    let e = stage.takeover(&[N2, N3, N4])?;
    let y = stage.write(e, &[row(1)]);
    stage.until("they go on", |s| s.acknowledged(y))?;
    stage.part(&[N5], &[N1]);
    stage.join(&[N5], &[N2, N3, N4]);
    stage.until("n5 drops X", |s| s.holds(N5, x).is_none())
}
