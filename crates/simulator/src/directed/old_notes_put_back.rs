//! An old copy of a node's log is put back, with its notes on the database (rule 11).
//!
//! As in `log_disk_replaced`, but n1's new log disk has a copy of its log from before it went on alone: the notes
//! beside the copy do not tell of the forced view. n1 must take the others' database.

use trireme_mutants::Mutant;

use super::log_disk_replaced::{comes_back_on, leaves_apart};
use super::old_log_put_back::copy_of_log;
use super::{Directed, Play, Stage, hasty};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OldNotesTrusted],
    plan: |seed| hasty(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let copy = copy_of_log(stage)?;
    leaves_apart(stage)?;
    comes_back_on(stage, copy)
}
