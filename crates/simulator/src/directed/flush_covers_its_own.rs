//! A flush covers what was appended before it began, and nothing later (`repl.durability=disk`, rule 4).
//!
//! n3 is cut off. n2's disk hangs while it flushes X, and Y comes meanwhile. Y needs a flush of its own: n2's machine
//! loses power when n2 has acknowledged Y, and must still hold Y.

use trireme_log::Durability;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::FlushCoversLater],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.durability = Durability::Disk;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    // The flushes of these entries also cover the commit of n2's vote.
    for number in 3..=4 {
        let written = stage.write(N1, &[row(number)]);
        stage.until("it is committed", |s| s.acknowledged(written))?;
        stage.until("n2 knows", |s| s.has_applied(N2, written))?;
        stage.pass_ms(50);
    }
    stage.part(&[N3], &[N1, N2]);
    stage.hang(N2, 500);
    // What n1 commits meanwhile would be noted in n2's log, and n2 would flush that, too.
    stage.hang(N1, 1_000);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is in n2's log", |s| s.holds(N2, x).is_some())?;
    let y = stage.write(N1, &[row(2)]);
    stage.until("Y is in n2's log", |s| s.holds(N2, y).is_some())?;
    stage.check("X is not flushed", stage.told(x).is_none())?;
    let at = stage.end(N2);
    let acknowledges = |s: &Stage| s.process(N2).is_some_and(|p| p.progress.has_acknowledged.1 >= at);
    stage.until("n2 acknowledges Y", acknowledges)?;
    stage.lose_power(N2);
    stage.start(N2);
    stage.must("n2 holds Y", stage.holds(N2, y).is_some());
    Ok(())
}
