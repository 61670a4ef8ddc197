//! A founder needs the support of all expected nodes.
//!
//! Three nodes expect each other. One stands for founding, and one of the others does not hear of it. The operator
//! replaces the founder by a fourth node. If the first one had founded with the support of two, the unaware node and
//! the fourth would be two as well.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::cluster::{founding, replaces};
use super::{Directed, N1, N2, N3, N4, Play, Stage};

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::FounderWithoutAll],
    plan: founding,
    play,
};

fn play(stage: &mut Stage) -> Play {
    let stands = |s: &Stage, node| s.has_promised(node, node);
    let one = stage.until_one("one stands", &[N1, N2, N3], stands)?;
    let others: Vec<_> = [N1, N2, N3].into_iter().filter(|n| *n != one).collect();
    let (far, near) = (others[0], others[1]);
    stage.part(&[one], &[far]);
    stage.reset(one, far);
    stage.until("the other one supports it", |s| s.has_promised(near, one))?;
    stage.cut(&[one], &[near, N4]);
    stage.pass_ms(1_000);
    stage.cut(&[near, N4], &[one]);
    stage.reset(one, near);
    replaces(stage, one);
    stage.pass_ms(10_000);
    let waits = |node| stage.component_state(node) == ComponentState::Outside;
    let nobody = [one, far, near, N4].into_iter().all(waits);
    stage.check("nobody founds", nobody || stage.has_promised(far, one))
}
