//! Connections break while a bulk payload travels: fetchers request the lost parts again (rule 8).

use trireme_mutants::Mutant;

use super::small_beside_large::{many_rows, plan};
use super::{Directed, N1, N2, N3, Play, Stage};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::LostPartNotAskedAgain],
    plan,
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    let large = stage.write(N2, &many_rows());
    stage.pass_ms(40);
    stage.check("it travels", stage.holds(N1, large).is_none())?;
    stage.reset(N2, N1);
    stage.reset(N2, N3);
    stage.until("it is acknowledged", |s| s.acknowledged(large))?;
    stage.until("all have it", |s| {
        [N1, N2, N3].iter().all(|n| s.has_applied(*n, large))
    })
}
