//! A member forgets what it has promised (rule 4).
//!
//! n1 is cut off. Of the two others, one takes leadership with the promise of the other, and both
//! commit X. The promiser's process dies and comes back, hearing n1 only, which still believes to be
//! leading. If the new process did not know its promise it would follow n1, and the two of them
//! would commit something else in the place of X.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::PromiseNotPersisted],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.suspect_timeout_ms = 60_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.part(&[N1], &[N2, N3]);
    let e = stage.takeover(&[N2, N3])?;
    let f = N2 + N3 - e;
    let x = stage.write(e, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    stage.part(&[e], &[f]);
    stage.crash(f, false);
    stage.start(f);
    stage.join(&[N1], &[f]);
    stage.until("it refuses n1", |s| s.ballot(N1) > s.ballot(e))?;
    stage.write(N1, &[row(2)]);
    stage.pass_ms(2_000);
    stage.check("n1 still believes in itself", stage.view(N1) == stage.view(e))
}
