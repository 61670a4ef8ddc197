//! `pc.ignore_sb` lets half of the votes go on, and no minority (rule 11).
//!
//! n1 is cut off from the two others; its connections to them stay. It does not go on, and they do.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, hasty, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::UnpromisedHalfCounts],
    plan: |seed| hasty(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.configure(N1, |config| config.ignore_split_brain = true);
    stage.part(&[N1], &[N2, N3]);
    let x = stage.write(N2, &[row(1)]);
    stage.until("the others write", |s| s.acknowledged(x))?;
    stage.pass_ms(5_000);
    let waits = stage.component_state(N1) == ComponentState::NonPrimary;
    stage.must("n1 does not go on alone", waits);
    stage.join(&[N1], &[N2, N3]);
    stage.until("all serve", |s| s.serve(&[N1, N2, N3]))
}
