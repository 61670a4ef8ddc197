//! An operator overrides on a node while disks are slow, beside a node with a longer log (rule 11).
//!
//! n4 and n5 have lost the others. n5 alone holds X, which was acknowledged. While n4's disk writes its promise, n4 can
//! ask nobody, and n5's disk takes its time, too. That is no silence of n5: the forced view has both, and X.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::override_beside_longer_log::n5_alone_has_x;
use super::{Directed, N4, N5, Play, Stage, hasty};
use crate::fault::Fault;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::OwnDelayIsSilence],
    plan: |seed| hasty(5, seed),
    play,
};

fn play(stage: &mut Stage) -> Play {
    let x = n5_alone_has_x(stage)?;
    stage.hang(N4, 400);
    stage.hang(N5, 1_600);
    stage.strike(Fault::Override { node: N4 });
    stage.until("n4 is primary", |s| {
        s.component_state(N4) == ComponentState::Primary
    })?;
    stage.pass_ms(2_000);
    stage.must("n5 is in its view", stage.members(N4) == 2);
    stage.must("X is kept", stage.has_applied(N4, x));
    Ok(())
}
