//! A member must not acknowledge an entry while the entry's flush is under way (`repl.durability=disk`, rule 4).
//!
//! n3 is cut off. X is in the logs of n1 and n2, whose disks take seconds: no client may hear that X has committed.
//! Both machines lose power, and X is lost. They go on without X: in this mode they are intact.

use trireme_log::Durability;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};
use crate::plan::Plan;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::FlushNotAwaited],
    plan,
    play,
};

/// A plan of three nodes that acknowledge only flushed entries.
pub(super) fn plan(seed: u64) -> Plan {
    Plan {
        durability: Durability::Disk,
        ..recovering(3, seed)
    }
}

/// Plays until n3 is cut off from the others, which have flushed everything.
pub(super) fn until_two_are_left(stage: &mut Stage) -> Play {
    stage.formed()?;
    // The flushes of these entries also cover the commit of n2's vote.
    for number in 2..=3 {
        let written = stage.write(N1, &[row(number)]);
        stage.until("it is committed", |s| s.acknowledged(written))?;
        stage.until("n2 knows", |s| s.has_applied(N2, written))?;
        stage.pass_ms(50);
    }
    stage.part(&[N3], &[N1, N2]);
    Ok(())
}

fn play(stage: &mut Stage) -> Play {
    until_two_are_left(stage)?;
    stage.slow(N1, 10_000);
    stage.slow(N2, 10_000);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is in n2's log", |s| s.holds(N2, x).is_some())?;
    stage.pass_ms(300);
    stage.crash(N1, true);
    stage.crash(N2, true);
    stage.slow(N1, 1);
    stage.slow(N2, 1);
    stage.start(N1);
    stage.start(N2);
    stage.until_one("they go on", &[N1, N2], |s, n| s.is_leading(n))?;
    Ok(())
}
