//! An old copy of a node's log is put back, with its notes on the database (rule 11).
//!
//! As in `log_disk_replaced`, but n1's new log disk has a copy of its log from before it went on alone: the notes
//! beside the copy do not tell of the forced view. n1 must take the others' database.

use trireme_mutants::Mutant;

use super::log_disk_replaced::leaves_apart;
use super::{Directed, N1, N2, N3, Play, Stage, hasty, row};
use crate::machine::Left;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OldNotesTrusted],
    plan: |seed| hasty(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.leave_until_gone(N1)?;
    let copy = stage.world.machines[N1].disk.copy();
    stage.start(N1);
    stage.until("all serve", |s| s.serve(&[N1, N2, N3]))?;
    leaves_apart(stage)?;
    let machine = &mut stage.world.machines[N1];
    machine.disk = copy;
    machine.left = Left::default();
    stage.join(&[N1], &[N2, N3]);
    stage.start(N1);
    if stage.world.plan.seed % 2 == 1 {
        // Its log has another id by now, and notes of its own, which must tell as much.
        stage.until("n1 has a log", |s| s.end(N1) > 0)?;
        stage.crash(N1, false);
        stage.start(N1);
    }
    stage.until("n1 serves", |s| s.serves(N1))?;
    let later = stage.write(N1, &[row(1)]);
    stage.until("all commit", |s| s.acknowledged(later))
}
