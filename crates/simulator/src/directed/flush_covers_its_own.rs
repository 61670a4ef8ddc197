//! A flush covers what was appended before it began, and nothing later (`repl.durability=disk`, rule 4).
//!
//! n3 is cut off. n2's disk hangs while it flushes X, and Y comes meanwhile. Y needs a flush of its own: n2's machine
//! loses power when n2 has acknowledged Y, and must still hold Y.

use trireme_mutants::Mutant;

use super::flush_under_way::{plan, until_two_are_left};
use super::{Directed, N1, N2, Play, Stage, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::FlushCoversLater],
    plan,
    play,
};

fn play(stage: &mut Stage) -> Play {
    until_two_are_left(stage)?;
    stage.hang(N2, 500);
    // n2 would note in its log that n1 commits X, and flush again.
    stage.hang(N1, 1_000);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is in n2's log", |s| s.holds(N2, x).is_some())?;
    let y = stage.write(N1, &[row(2)]);
    stage.until("Y is in n2's log", |s| s.holds(N2, y).is_some())?;
    stage.check("X is not flushed", stage.told(x).is_none())?;
    let at = stage.end(N2);
    let acknowledges = |s: &Stage| {
        s.process(N2)
            .is_some_and(|p| p.progress.has_acknowledged.1 >= at)
    };
    stage.until("n2 acknowledges Y", acknowledges)?;
    stage.lose_power(N2);
    stage.start(N2);
    stage.must("n2 holds Y", stage.holds(N2, y).is_some());
    Ok(())
}
