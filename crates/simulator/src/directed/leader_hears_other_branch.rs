//! A member that follows another branch is no part of the leader's majority (rules 3 and 11).
//!
//! n1 leads. n3 is cut off and goes on alone (`pc.ignore_quorum`). n2 hears n1 no more, and follows n3. Then n1 and n2
//! hear each other again, and n1 does not hear n3. It can commit nothing, and must not stay primary.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::cluster::goes_on_alone;
use super::{Directed, N1, N2, N3, Play, Stage, hasty};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OtherBranchHeard],
    plan: |seed| hasty(3, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.check("n1 holds leadership", stage.is_leading(N1))?;
    stage.cut(&[N1], &[N2]);
    goes_on_alone(stage, N3, &[N1, N2])?;
    stage.until("n2 has lost its leader", |s| {
        s.component_state(N2) == ComponentState::NonPrimary
    })?;
    stage.join(&[N3], &[N2]);
    stage.until("n2 follows n3", |s| s.serves(N2) && s.members(N3) == 2)?;
    stage.check(
        "n1 hears n2",
        stage.component_state(N1) == ComponentState::Primary,
    )?;
    stage.heal(&[N1], &[N2]);
    stage.pass_ms(3_000);
    let waits = stage.component_state(N1) == ComponentState::NonPrimary;
    stage.must("n1 does not stay primary", waits);
    stage.join(&[N1], &[N3]);
    stage.until("all serve", |s| s.serve(&[N1, N2, N3]))
}
