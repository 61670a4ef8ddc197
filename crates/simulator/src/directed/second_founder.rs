//! A node that has supported a founder supports no other one, whatever happens to the first.
//!
//! Three nodes expect each other. One of them has the support of all, founds, and is cut off before any node hears of
//! it. The operator replaces it by a fourth node and restarts the others with that list. Now three nodes without a
//! history hear each other, but two of them are not free: the first founder may have acknowledged commits, and has.
//! When they hear it again they join it.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::cluster::{founding, replaces};
use super::{Directed, N1, N2, N3, N4, Play, Stage, row};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::SupportForgotten, Mutant::SupportMovesFreely],
    plan: founding,
    play,
};

fn play(stage: &mut Stage) -> Play {
    let is_primary = |s: &Stage, node| s.component_state(node) == ComponentState::Primary;
    let founder = stage.until_one("one founds", &[N1, N2, N3], is_primary)?;
    let others: Vec<_> = [N1, N2, N3].into_iter().filter(|n| *n != founder).collect();
    stage.part(&[founder], &[others[0], others[1], N4]);
    others.iter().for_each(|other| stage.reset(founder, *other));
    stage.until("it is synced", |s| {
        s.state(founder) == Some(trireme_replicator::LocalState::Synced)
    })?;
    let x = stage.write(founder, &[row(1)]);
    stage.until("X is committed", |s| s.acknowledged(x))?;
    replaces(stage, founder);
    stage.pass_ms(10_000);
    let waits = |node| stage.component_state(node) == ComponentState::Outside;
    stage.check(
        "the others wait",
        others.iter().all(|n| waits(*n)) && waits(N4),
    )
}
