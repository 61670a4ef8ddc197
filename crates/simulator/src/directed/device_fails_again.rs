//! A node's volume fails, is mounted again, and fails while the next process opens the log (rule 4, `os` mode).
//!
//! n1 and n2 have X, n3 does not. n2 is killed, and its volume loses X. The next process learns this from the mark,
//! but cannot note it, because the volume fails again. The process after that, on a working volume, must still know.

use trireme_mutants::Mutant;

use super::device_fails_unseen::{has_no_say, volume_fails};
use super::{Directed, N1, N2, N3, Play, Stage, patient};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::MarkBegunFirst],
    plan: |seed| patient(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    let x = volume_fails(stage)?;
    stage.remount(N2);
    stage.world.machines[N2].disk.set_fail_state(true);
    stage.start(N2);
    stage.check("n2 does not start", stage.group(N2).is_none())?;
    stage.world.machines[N2].disk.set_fail_state(false);
    stage.part(&[N1], &[N2, N3]);
    stage.join(&[N2], &[N3]);
    stage.until("n2 is back", |s| s.group(N2).is_some())?;
    has_no_say(stage, x)
}
