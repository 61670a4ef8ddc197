//! A member with most of the votes has lost its log, and the survivor says why it waits (rules 4 and 18).
//!
//! n1 has weight 2. It dies, and its next process does not read its log (`gcache.recover=no`). n2 has forgotten nothing,
//! but the log of n1 may have had views that n2's lacks: the two do not go on by themselves. The operator follows n2.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, Play, Stage, cluster};
use crate::fault::Fault;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::WaitInVainUntold],
    plan: |seed| {
        let mut plan = cluster(2, seed);
        plan.recovers = false;
        plan.nodes[N1].weight = 2;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    stage.crash(N1, false);
    stage.until("n2 has lost its majority", |s| {
        s.component_state(N2) == ComponentState::NonPrimary
    })?;
    stage.start(N1);
    stage.pass_ms(15_000);
    let waits = stage.component_state(N2) == ComponentState::NonPrimary;
    stage.must("n2 does not go on by itself", waits);
    let advised = stage
        .process(N2)
        .is_some_and(|process| process.progress.advised == Some(N2 + 1));
    stage.must("n2 says how to go on", advised);
    stage.strike(Fault::Override { node: N2 });
    stage.until("both serve", |s| s.serve(&[N1, N2]))
}
