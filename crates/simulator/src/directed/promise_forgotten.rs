//! A member forgets its promise (rule 4).
//!
//! n1 is cut off with Y in its log. Of the two others, one becomes leader with the other's promise, and both commit X.
//! The process that promised dies and comes back. It hears only n1, which still believes to lead. If the new process
//! did not know its promise it would follow n1, and the two would commit Y in the place of X.

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
    let y = stage.write(N1, &[row(2)]);
    stage.until("Y is in n1's log", |s| s.holds(N1, y).is_some())?;
    let e = stage.takeover(&[N2, N3])?;
    let f = N2 + N3 - e;
    let x = stage.write(e, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    stage.part(&[e], &[f]);
    stage.crash(f, false);
    stage.start(f);
    stage.join(&[N1], &[f]);
    stage.until("it refuses n1", |s| s.term(N1) > s.term(e))?;
    stage.pass_ms(2_000);
    stage.check(
        "n1 still believes in itself",
        stage.view(N1) == stage.view(e),
    )
}
