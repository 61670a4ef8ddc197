//! A node's volume fails, and the node begins another log while the volume is not mounted (rule 4, `os` mode).
//!
//! As in `device_fails_unmounted`, but n1 gives n2 a new log, and n2 is killed before its data directory names that
//! log; the seed decides how far it gets. The mark of the earlier log must still be there.

use trireme_mutants::Mutant;

use super::device_fails_unseen::{mounted_again, volume_fails};
use super::{Directed, N2, Play, Stage, patient};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::UnnamedLogMarked],
    plan: |seed| patient(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    let x = volume_fails(stage)?;
    stage.unmount(N2);
    stage.world.machines[N2].dies_at_rename = Some(8 - stage.world.plan.seed % 8);
    stage.start(N2);
    stage.until("it is dead", |s| s.process(N2).is_none())?;
    mounted_again(stage, x)
}
