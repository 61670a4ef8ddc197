//! A submission must not be ordered again after a leader change (rule 9).
//!
//! n1 has ordered n2's X, and of the others only n3 knows. n1 is cut off, and every majority of the others needs n3.
//! n3 becomes leader with X in its log. n2 does not know that X is ordered, and sends it again.

use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, N4, N5, Play, Stage, cluster, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::DuplicateOrdered],
    plan: |seed| cluster(5, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.cut(&[N1], &[N2, N4, N5]);
    let x = stage.write(N2, &[row(1)]);
    stage.until("n3 has X", |s| s.holds(N3, x).is_some())?;
    stage.check("uncommitted", !stage.has_committed(N3, x))?;
    stage.part(&[N1], &[N2, N3, N4, N5]);
    stage.part(&[N4], &[N2, N5]);
    stage.until("n3's leadership", |s| s.is_leading(N3))?;
    stage.check("with X in its log", stage.holds(N3, x).is_some())?;
    stage.until("X is acknowledged", |s| s.acknowledged(x))?;
    stage.pass_ms(1_500);
    Ok(())
}
