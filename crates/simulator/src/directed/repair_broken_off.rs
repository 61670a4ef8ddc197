//! A process cannot go on after it has repaired its damaged log (rule 4).
//!
//! n1 and n2 have X and Y, n3 has neither. n2's process dies, and its disk loses X. The next process cuts the log
//! before X, and the flush fails. The process after that, on a good disk, finds an undamaged log that ends there. n1
//! is cut off. n2 and n3 are two votes of three, but neither has X or Y: they must wait for n1.

use trireme_mutants::Mutant;

use super::damaged_voter::damage;
use super::{Directed, N2, N3, Play, Stage, recovering};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::DamageRepairedFirst],
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
    let (disk, segment, at) = damage(stage)?;
    let length = || disk.contents(&segment).map_or(0, |bytes| bytes.len());
    disk.set_fail_syncs(true);
    stage.start(N2);
    stage.check("n2 does not start", stage.group(N2).is_none())?;
    stage.check("its log is cut", length() <= at + 40)?;
    disk.set_fail_syncs(false);
    stage.until("n2 reads its log back", |s| s.end(N2) > 0)?;
    stage.pass_ms(4_000);
    stage.check(
        "and waits for n1",
        !stage.is_leading(N2) && !stage.is_leading(N3),
    )
}
