//! A node's volume fails, and no process of the node sees an error (rule 4, `os` mode).
//!
//! As in `device_fails`, but n2 is killed before its next write: only the mark shows that X was in its log.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, recovering, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::MarkLags, Mutant::MarkNotHeeded],
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
