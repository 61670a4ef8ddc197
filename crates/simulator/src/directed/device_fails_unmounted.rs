//! A node's volume fails, and the node is started once while the volume is not mounted (rule 4, `os` mode).
//!
//! As in `device_fails_unseen`, but before the volume is mounted again, a process of n2 finds an empty directory,
//! reaches nobody, and is stopped. The mark must outlive that process.

use trireme_mutants::Mutant;

use super::device_fails_unseen::{mounted_again, volume_fails};
use super::{Directed, N1, N2, Play, Stage, patient};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::MarkRemovedUnread],
    plan: |seed| patient(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    let x = volume_fails(stage)?;
    stage.unmount(N2);
    stage.part(&[N1], &[N2]);
    stage.start(N2);
    stage.pass_ms(1_000);
    stage.check("n2 has no log", stage.end(N2) == 0)?;
    stage.leave_until_gone(N2)?;
    mounted_again(stage, x)
}
