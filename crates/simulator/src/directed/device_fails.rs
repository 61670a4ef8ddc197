//! A node's volume fails, is repaired and mounted again while the machine goes on (rule 4, `os` mode).
//!
//! n1 and n2 have X, n3 does not. The volume of n2 fails all writes. The write of Y fails, n2 leaves, and the
//! unflushed data of the operating system is lost, X with it. n2 is restarted, or connects again in the same process.
//! n1 is cut off. n2 and n3 are two votes of three, but neither has X: they must wait for n1.

use super::device_fails_unseen::has_no_say;
use super::{Directed, N1, N2, N3, Play, Stage, patient, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[],
    plan: |seed| patient(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    lose_x(stage)
}

/// Plays to the end, where n1 is cut off and n2 must have no say.
pub(super) fn lose_x(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.part(&[N3], &[N1, N2]);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    stage.until("n2 has X", |s| s.has_committed(N2, x))?;
    stage.fail_device(N2);
    stage.write(N1, &[row(2)]);
    stage.until("n2 leaves", |s| s.group(N2).is_none())?;
    stage.remount(N2);
    stage.part(&[N1], &[N2, N3]);
    stage.join(&[N2], &[N3]);
    stage.until("n2 is back", |s| s.group(N2).is_some())?;
    has_no_say(stage, x)
}
