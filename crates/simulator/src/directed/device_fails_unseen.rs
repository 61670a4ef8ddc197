//! A node's volume fails, and no process of the node sees an error (rule 4, `os` mode).
//!
//! As in `device_fails`, but n2 is killed before its next write: only the mark shows that X was in its log.

use trireme_mutants::Mutant;

use super::{Directed, Missed, N1, N2, N3, Play, Stage, patient, row};
use crate::seen::ClientTrx;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::MarkLags, Mutant::MarkNotHeeded],
    plan: |seed| patient(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    let x = volume_fails(stage)?;
    mounted_again(stage, x)
}

/// Plays until n1 and n2 have committed X, n3 has not, the volume of n2's log has failed, and n2 is dead.
pub(super) fn volume_fails(stage: &mut Stage) -> Result<ClientTrx, Missed> {
    stage.formed()?;
    stage.part(&[N3], &[N1, N2]);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    stage.until("n2 has X", |s| s.has_committed(N2, x))?;
    stage.fail_device(N2);
    stage.crash(N2, false);
    Ok(x)
}

/// Plays to the end, where n2 is started on its volume, without X.
pub(super) fn mounted_again(stage: &mut Stage, x: ClientTrx) -> Play {
    stage.remount(N2);
    stage.part(&[N1], &[N2, N3]);
    stage.join(&[N2], &[N3]);
    stage.start(N2);
    has_no_say(stage, x)
}

/// n1 is cut off. n2 and n3 are two votes of three, but neither has X.
pub(super) fn has_no_say(stage: &mut Stage, x: ClientTrx) -> Play {
    stage.check("n2 has lost X", stage.holds(N2, x).is_none())?;
    stage.pass_ms(4_000);
    stage.must(
        "n2 and n3 wait for n1",
        !stage.is_leading(N2) && !stage.is_leading(N3),
    );
    Ok(())
}
