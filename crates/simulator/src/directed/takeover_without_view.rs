//! The leader changes, the membership does not: no server sees a view (rules 2, 24).
//!
//! n1 is paused for a moment, and another node becomes leader. A view would take a seqno, drain all appliers, and
//! make wsrep-lib roll back every streaming transaction.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::TakeoverMakesView],
    plan: |seed| cluster(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let shown = |s: &Stage| [N1, N2, N3].map(|n| s.views_shown(n));
    let before = shown(stage);
    stage.pause(N1);
    let e = stage.takeover(&[N2, N3])?;
    let x = stage.write(e, &[row(1)]);
    stage.until("they go on", |s| s.acknowledged(x))?;
    stage.resume(N1);
    stage.until("n1 follows", |s| s.has_applied(N1, x))?;
    stage.pass_ms(200);
    stage.must("a takeover shows no view", shown(stage) == before);
    Ok(())
}
