//! Shows the invariants `control-equal` and `verdicts-equal` the replicators' control states.

use trireme_group::{Checkpoint, Position};
use trireme_replicator::{ControlDigest, Replicator};

use super::World;
use crate::seen::{Extent, NodeId, Seen, TimeUs};
use crate::watch::Watch;

/// The whole control state is shown at each multiple of this position: its digest costs as much as encoding the
/// certification index.
const WHOLE_EVERY: Position = 32;

/// Shows the control state after a delivery, if the replicator has handled the delivery and not put it off.
pub(super) fn see_taken_in(
    watch: &mut Watch,
    now_us: TimeUs,
    node: NodeId,
    replicator: &Replicator,
    shown: &mut Position,
) {
    if replicator.control_position().is_none_or(|at| at == *shown) {
        return;
    }
    let Some((position, digest)) = replicator.control_brief() else {
        return;
    };
    *shown = position;
    let extent = Extent::Brief;
    let what = Seen::Control {
        position,
        extent,
        digest,
    };
    watch.see(now_us, node, what);
    if position % WHOLE_EVERY == 0 {
        see_whole(watch, now_us, node, replicator.control_digest());
    }
}

fn see_whole(watch: &mut Watch, now_us: TimeUs, node: NodeId, digest: Option<ControlDigest>) {
    let Some(digest) = digest else {
        return;
    };
    let position = digest.position;
    for (extent, digest) in [(Extent::Brief, digest.brief), (Extent::Whole, digest.whole)] {
        let what = Seen::Control {
            position,
            extent,
            digest,
        };
        watch.see(now_us, node, what);
    }
}

/// Shows states that the log keeps, or that a process took up from its log. `control`: None if it cannot be used.
pub(super) fn see_kept(
    watch: &mut Watch,
    now_us: TimeUs,
    node: NodeId,
    state: &Checkpoint,
    control: Option<ControlDigest>,
) {
    let what = Seen::Kept {
        group: state.clone(),
        control: control.map_or(0, |control| control.position),
    };
    watch.see(now_us, node, what);
    see_whole(watch, now_us, node, control);
}

impl World {
    /// Shows the whole control state.
    pub(crate) fn show_control(&mut self, node: NodeId) {
        let Some(process) = &mut self.machines[node].process else {
            return;
        };
        let digest = process.engine.replicator.control_digest();
        process.control_shown = digest.map_or(0, |digest| digest.position);
        see_whole(&mut self.watch, self.now_us, node, digest);
    }

    /// Shows the whole control state if it is not the one of the last delivery: it came from another node, or the
    /// replicator has handled deliveries that it had put off.
    pub(super) fn show_moved_control(&mut self, node: NodeId) {
        let Some(process) = &self.machines[node].process else {
            return;
        };
        let at = process.engine.replicator.control_position();
        if at.is_some_and(|at| at != process.control_shown) {
            self.show_control(node);
        }
    }

    /// Shows the states that a process took up from an earlier process's log.
    pub(super) fn show_taken_up(&mut self, node: NodeId) {
        let Some(process) = &self.machines[node].process else {
            return;
        };
        let link = process.engine.link();
        if let Some(state) = link.and_then(|link| link.storage.resumed()) {
            let control = process.engine.replicator.control_digest();
            see_kept(&mut self.watch, self.now_us, node, state, control);
        }
    }
}
