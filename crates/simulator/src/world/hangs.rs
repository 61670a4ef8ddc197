//! Checks that leadership leaves a disk that does not answer (docs/guarantees.md, section 4).

use trireme_group::Preference;
use trireme_replicator::{LocalState, NoHistory};

use super::World;
use crate::seen::{NodeId, Seen, TimeUs};

/// Maximum time for which a leader that has noticed the hang may keep leadership while another member could lead. It
/// must see a better place for 1.5 s, and finds one only at a moment when nothing waits to be committed.
const KEEPS_MS: u64 = 4_500;
/// A leader that got leadership by a transfer keeps it for this long (`group/src/transfer.rs`).
const REST_US: TimeUs = 10_000_000;

impl World {
    /// Checks that a node does not go on leading while its flushes hang.
    pub(super) fn look_at_hang(&mut self, node: NodeId) {
        let now_us = self.now_us;
        let could_hand_over = self.could_hand_over(node);
        let Some(process) = &mut self.machines[node].process else {
            return;
        };
        let link = process.engine.link();
        if !link.is_some_and(|link| link.group.is_leader()) {
            (process.leads_us, process.keeps_hanging_us) = (None, None);
            return;
        }
        let leads_us = *process.leads_us.get_or_insert(now_us);
        let rests = now_us < leads_us + REST_US;
        if rests || !process.progress.is_hanging || !could_hand_over {
            process.keeps_hanging_us = None;
            return;
        }
        let since_us = *process.keeps_hanging_us.get_or_insert(now_us);
        let what = Seen::Size {
            name: "time in ms for which a leader on a disk that does not answer keeps leadership",
            value: (now_us - since_us) / 1000,
            limit: KEEPS_MS,
        };
        self.watch.see(now_us, node, what);
    }

    /// True if all nodes are members that hear each other, the others are a majority on disks that answer, and one of
    /// them may lead.
    fn could_hand_over(&self, node: NodeId) -> bool {
        let hangs = |node: &NodeId| self.machines[*node].hangs_until_us > self.now_us;
        if !self.plan.leadership_moves || !hangs(&node) || !self.is_tidy() {
            return false;
        }
        let others = || (0..self.machines.len()).filter(|other| *other != node && !hangs(other));
        let link = |node: NodeId| self.machines[node].process.as_ref()?.engine.link();
        let Some(configuration) = link(node).map(|link| link.group.configuration()) else {
            return false;
        };
        let weight = |node: &NodeId| {
            let member = configuration.replica(self.machines[*node].replica);
            member.map_or(0, |member| u64::from(member.weight))
        };
        let may_lead = |node: &NodeId| {
            let process = self.machines[*node].process.as_ref();
            let synced = process.is_some_and(|process| {
                process.engine.replicator.status(&NoHistory).local_state == LocalState::Synced
            });
            let plan = &self.plan.nodes[*node];
            synced && !plan.arbitrator && plan.preference != Preference::Never && weight(node) > 0
        };
        configuration.is_majority(others().map(|node| weight(&node)).sum())
            && others().any(|node| may_lead(&node))
    }
}
