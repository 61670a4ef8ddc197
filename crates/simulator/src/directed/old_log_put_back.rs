//! An old copy of a node's log is put back in the log's place (rule 4).
//!
//! n1 is stopped cleanly, and somebody copies the files of its log. n1 goes on, and with n3 acknowledges X, which n2
//! lacks. n1 and n3 are killed. n1 is started on the copy, which ended cleanly and lacks X. n1 and n2 are two votes of
//! three: they must wait for n3.

use trireme_log::MemoryDisk;
use trireme_mutants::Mutant;

use super::{Directed, Missed, N1, N2, N3, Play, Stage, patient, row};
use crate::machine::Left;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::LogIdKept],
    plan: |seed| patient(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let copy = copy_of_log(stage)?;
    stage.part(&[N2], &[N1, N3]);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    stage.crash(N1, false);
    stage.crash(N3, false);
    let machine = &mut stage.world.machines[N1];
    machine.disk = copy;
    machine.left = Left::default();
    stage.join(&[N2], &[N1, N3]);
    stage.start(N1);
    stage.check("n1 has lost X", stage.holds(N1, x).is_none())?;
    stage.pass_ms(4_000);
    stage.must(
        "n1 and n2 wait for n3",
        !stage.is_leading(N1) && !stage.is_leading(N2),
    );
    stage.start(N3);
    stage.until("they have X again", |s| s.has_applied(N2, x))
}

/// Plays until n1 was stopped, its log was copied, and n1 serves again. Returns the copy.
pub(super) fn copy_of_log(stage: &mut Stage) -> Result<MemoryDisk, Missed> {
    stage.leave_until_gone(N1)?;
    let copy = stage.world.machines[N1].disk.copy();
    stage.start(N1);
    stage.until("all serve", |s| s.serve(&[N1, N2, N3]))?;
    Ok(copy)
}
