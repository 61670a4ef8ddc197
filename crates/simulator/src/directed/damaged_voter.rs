//! A process whose log was damaged between two processes takes part in an election (rule 4).
//!
//! n1 and n2 have X and Y, n3 has neither. n2's process dies, and its disk loses X: the log of the next process ends
//! before X. n1 is cut off. n2 and n3 are two votes of three, but neither has X or Y: they must wait for n1.

use trireme_log::MemoryDisk;
use trireme_mutants::Mutant;

use super::{Directed, Missed, N1, N2, N3, Play, Stage, recovering, row};
use crate::world::segments;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::DamageNotForgotten],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        // The mark would say, too, that the log ends too early.
        plan.marks = false;
        plan.suspect_timeout_ms = 60_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    damage(stage)?;
    stage.start(N2);
    stage.check("n2 reads its log back", stage.end(N2) > 0)?;
    stage.pass_ms(4_000);
    stage.check(
        "and waits for n1",
        !stage.is_leading(N2) && !stage.is_leading(N3),
    )
}

/// Plays until n2 may be started, out of n1's reach. Returns its disk, the file, and the offset of X in it.
pub(super) fn damage(stage: &mut Stage) -> Result<(MemoryDisk, String, usize), Missed> {
    stage.formed()?;
    let disk = stage.world.machines[N2].disk.clone();
    let segment = segments(&disk).pop().unwrap_or_default();
    let length = || disk.contents(&segment).map_or(0, |bytes| bytes.len());
    let at = length();
    stage.part(&[N3], &[N1, N2]);
    for number in 1..=2 {
        let written = stage.write(N1, &[row(number)]);
        stage.until("it is committed", |s| s.acknowledged(written))?;
        stage.until("on n2, too", |s| s.has_committed(N2, written))?;
    }
    stage.pass_ms(50);
    stage.check("X and Y are in the file", length() > at + 100)?;
    stage.crash(N2, false);
    disk.flip_bit(&segment, at + 40, 3);
    stage.part(&[N1], &[N2, N3]);
    stage.join(&[N2], &[N3]);
    Ok((disk, segment, at))
}
