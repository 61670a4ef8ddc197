//! A node's volume fails, is mounted again, and fails while the next process opens the log (rule 4, `os` mode).
//!
//! n1 and n2 have X, n3 does not. n2 is killed, and its volume loses X. The next process learns this from the mark,
//! but cannot note it, because the volume fails again. The process after that, on a working volume, must still know.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::MarkBegunFirst],
    plan: |seed| {
        let mut plan = recovering(3, seed);
        plan.suspect_timeout_ms = 60_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.part(&[N3], &[N1, N2]);
    let x = stage.write(N1, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    stage.until("n2 has X", |s| s.has_committed(N2, x))?;
    stage.fail_device(N2);
    stage.crash(N2, false);
    stage.remount(N2);
    stage.world.machines[N2].disk.set_fail_state(true);
    stage.start(N2);
    stage.check("n2 does not start", stage.group(N2).is_none())?;
    stage.world.machines[N2].disk.set_fail_state(false);
    stage.part(&[N1], &[N2, N3]);
    stage.join(&[N2], &[N3]);
    stage.until("n2 is back", |s| s.group(N2).is_some())?;
    stage.check("n2 has lost X", stage.holds(N2, x).is_none())?;
    stage.pass_ms(4_000);
    stage.must(
        "n2 and n3 wait for n1",
        !stage.is_leading(N2) && !stage.is_leading(N3),
    );
    Ok(())
}
