//! A node is cut off: it stops being primary before the others have a view without it (rule 10).
//!
//! First a member is cut off several times, at several moments between two heartbeats; its clock is slow, so it
//! needs 0.15 s more for the timeout. Then the leader is.

use trireme_group::ComponentState;
use trireme_mutants::Mutant;

use super::{Directed, N1, N2, N3, Play, Stage, cluster};
use crate::seen::NodeId;

pub(super) const SCHEDULE: Directed = Directed {
    mutants: &[Mutant::RemovedAtOnce, Mutant::SilenceFromTick],
    plan: |seed| {
        let mut plan = cluster(3, seed);
        plan.leadership_moves = false;
        plan.nodes[N3].drift_ppm = -50_000;
        plan
    },
    play,
};

fn play(stage: &mut Stage) -> Play {
    stage.formed()?;
    for offset_ms in (0..100).step_by(25) {
        stage.pass_ms(1_000 + offset_ms);
        cut_off(stage, N3, [N1, N2])?;
    }
    stage.check("n1 leads", stage.is_leading(N1))?;
    cut_off(stage, N1, [N2, N3])
}

/// Cuts off a node until the others have a view without it, and lets it return.
fn cut_off(stage: &mut Stage, node: NodeId, others: [NodeId; 2]) -> Play {
    let view = stage.view(others[0]);
    let is_primary = |s: &Stage| s.component_state(node) == ComponentState::Primary;
    let goes_on = |s: &Stage| s.view(others[0]) > view;
    stage.part(&[node], &others);
    stage.until("one side notices", |s| !is_primary(s) || goes_on(s))?;
    stage.must("the node stops first", !goes_on(stage));
    stage.until("the others go on", goes_on)?;
    stage.join(&[node], &others);
    stage.until("the node is back", |s| is_primary(s) && s.serves(node))
}
