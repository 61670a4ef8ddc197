//! A node's volume fails, and the node is started once while the volume is not mounted (rule 4, `os` mode).
//!
//! As in `device_fails_unseen`, but before the volume is mounted again, a process of n2 finds an empty directory,
//! reaches nobody, and is stopped. The mark must outlive that process.

use trireme_log::MemoryDisk;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};
use crate::machine::Left;
use crate::seen::ClientTrx;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::MarkRemovedUnread],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.suspect_timeout_ms = 60_000;
        plan
    },
    play: |stage| {
        let (x, volume) = unmounted(stage)?;
        stage.part(&[N1], &[N2]);
        stage.start(N2);
        stage.pass_ms(1_000);
        stage.check("n2 has no log", stage.end(N2) == 0)?;
        stage.leave_until_gone(N2)?;
        mounted_again(stage, x, volume)
    },
};

/// A volume that is not mounted.
pub(super) struct Volume {
    disk: MemoryDisk,
    left: Left,
}

/// Plays until n2 is dead, and an empty directory is in the place of its failed volume, which had X.
pub(super) fn unmounted(stage: &mut Stage) -> Result<(ClientTrx, Volume), super::Missed> {
    stage.formed()?;
    stage.part(&[N3], &[N1, N2]);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    stage.until("n2 has X", |s| s.has_committed(N2, x))?;
    stage.fail_device(N2);
    stage.crash(N2, false);
    let machine = &mut stage.world.machines[N2];
    machine.votes_fail = None; // the data directory is on another volume
    let volume = Volume {
        disk: std::mem::take(&mut machine.disk),
        left: std::mem::take(&mut machine.left),
    };
    Ok((x, volume))
}

/// Plays to the end, where n2 has its volume again, without X, n1 is cut off, and n2 must have no say.
pub(super) fn mounted_again(stage: &mut Stage, x: ClientTrx, volume: Volume) -> Play {
    let machine = &mut stage.world.machines[N2];
    (machine.disk, machine.left) = (volume.disk, volume.left);
    stage.remount(N2);
    stage.part(&[N1], &[N2, N3]);
    stage.join(&[N2], &[N3]);
    stage.start(N2);
    stage.check("n2 has lost X", stage.holds(N2, x).is_none())?;
    stage.pass_ms(4_000);
    stage.must(
        "n2 and n3 wait for n1",
        !stage.is_leading(N2) && !stage.is_leading(N3),
    );
    Ok(())
}
