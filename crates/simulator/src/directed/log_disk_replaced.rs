//! The volume of a node's log is replaced by an empty one, and the notes on the node's database are lost with it (rule
//! 11).
//!
//! n1 is cut off and goes on alone (`pc.ignore_quorum`), and so do n2 and n3. n1 is stopped cleanly before it meets them,
//! with rows that they do not have. Its new log disk is empty: nothing tells of its forced view. n2 and n3 are further by
//! then. n1 must take their database, also if it is killed before it has done so.

use trireme_log::MemoryDisk;
use trireme_mutants::Mutant;

use super::cluster::goes_on_alone;
use super::{Directed, N1, N2, N3, Play, Stage, hasty, row};
use crate::machine::Left;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::LostNotesTrusted],
    plan: |seed| hasty(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    leaves_apart(stage)?;
    comes_back_on(stage, MemoryDisk::new())
}

/// Plays until n1 has gone on alone and is stopped, and the others are further.
pub(super) fn leaves_apart(stage: &mut Stage) -> Play {
    goes_on_alone(stage, N1, &[N2, N3])?;
    let alone = stage.write(N1, &[row(1)]);
    stage.until("n1 goes on alone", |s| s.acknowledged(alone))?;
    stage.until("the others are primary", |s| s.members(N2) == 2)?;
    stage.leave_until_gone(N1)?;
    stage.commit_many(N2, 1..20)?;
    Ok(())
}

/// Plays to the end, where n1 comes back with this disk in the place of its log's.
pub(super) fn comes_back_on(stage: &mut Stage, disk: MemoryDisk) -> Play {
    let machine = &mut stage.world.machines[N1];
    machine.disk = disk;
    machine.left = Left::default();
    stage.join(&[N1], &[N2, N3]);
    stage.start(N1);
    if stage.world.plan.seed % 2 == 1 {
        // Its log is another one by now, with notes of its own, which must tell as much.
        stage.until("n1 has a log", |s| s.end(N1) > 0)?;
        stage.crash(N1, false);
        stage.start(N1);
    }
    stage.until("n1 serves", |s| s.serves(N1))?;
    let later = stage.write(N1, &[row(1)]);
    stage.until("all commit", |s| s.acknowledged(later))
}
