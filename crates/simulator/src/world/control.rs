//! Shows what replicators have derived from the log (invariants `control-equal` and `verdicts-equal`).

use trireme_group::{Checkpoint, Position};
use trireme_replicator::{ControlDigest, Replicator};

use super::World;
use crate::seen::{Extent, NodeId, Seen, TimeUs};
use crate::watch::Watch;

/// The whole is shown at each multiple: it costs as much as to encode the certification index.
const WHOLE_EVERY: Position = 32;

/// Something was delivered: if the replicator has taken it in, and not put it off.
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

/// States are kept in the log, or were taken up from there. `control`: None if it is of no use.
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
    /// Shows all of the control state.
    pub(crate) fn show_control(&mut self, node: NodeId) {
        let Some(process) = &mut self.machines[node].process else {
            return;
        };
        let digest = process.engine.replicator.control_digest();
        process.control_shown = digest.map_or(0, |digest| digest.position);
        see_whole(&mut self.watch, self.now_us, node, digest);
    }

    /// The same, if it is not where the last delivery has left it: it came from another node, or what had been put off
    /// was taken in.
    pub(super) fn show_moved_control(&mut self, node: NodeId) {
        let Some(process) = &self.machines[node].process else {
            return;
        };
        let at = process.engine.replicator.control_position();
        if at.is_some_and(|at| at != process.control_shown) {
            self.show_control(node);
        }
    }

    /// A process goes on with what an earlier one has kept.
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
