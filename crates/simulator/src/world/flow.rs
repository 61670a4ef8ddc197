//! Checks how long clients wait for one slow member (rule 15).

use trireme_replicator::{LocalState, Status};

use super::World;
use crate::seen::{NodeId, Seen};

/// Maximum time without a break for which one slow member may make the others' clients wait. It includes slow disks
/// and processors and far members.
const HELD_UP_MS: u64 = 1_500;

impl World {
    /// Checks that no clients wait long for one slow member while the order decides quickly.
    pub(super) fn look_at_flow(&mut self, node: NodeId, status: &Status) {
        let waits = status.flow_control_active && status.local_send_queue.now > 0;
        let is_held_up = waits && self.one_holds_up(node, &status.left_out);
        let now_us = self.now_us;
        let Some(process) = &mut self.machines[node].process else {
            return;
        };
        let Some(group) = process.engine.link().map(|link| &link.group) else {
            return;
        };
        // The order cannot leave a member out while it stands still: it waits for the log of a member, say, without which
        // no majority holds its entries (seed 7410181124 of `mistakes`).
        let (commit, looked_us) = (group.commit(), process.looked_us);
        let stands_still = commit == process.commit_before && commit < group.end();
        (process.commit_before, process.looked_us) = (commit, now_us);
        if let Some(since_us) = process.held_up_us.as_mut().filter(|_| stands_still) {
            *since_us += now_us - looked_us;
        }
        let left_out = status.left_out.contains(&format!("n{}", node + 1));
        let was_left_out = std::mem::replace(&mut process.left_out, left_out);
        self.coverage.left_out += u64::from(left_out && !was_left_out);
        if !is_held_up {
            process.held_up_us = None;
            return;
        }
        let since_us = *process.held_up_us.get_or_insert(now_us);
        let what = Seen::Size {
            name: "time in ms for which one slow member holds up the clients",
            value: (now_us - since_us) / 1000,
            limit: HELD_UP_MS,
        };
        self.watch.see(now_us, node, what);
    }

    /// True if exactly one other member asks the writers to stop, and the group could do without it. `left_out`: the members
    /// that are left out, as the node knows; they may not know it yet (seed 3600203816 of `laggards`).
    fn one_holds_up(&self, node: NodeId, left_out: &[String]) -> bool {
        let nodes = self.machines.iter().enumerate();
        let statuses: Vec<_> = nodes
            .filter_map(|(node, m)| Some((node, m.process.as_ref()?.engine.status())))
            .collect();
        let stops = statuses.iter().filter(|(_, s)| s.flow_control_requested);
        let stoppers: Vec<_> = stops.map(|(node, _)| *node).collect();
        let synced = |(other, s): &&(NodeId, Status)| {
            s.local_state == LocalState::Synced && !left_out.contains(&format!("n{}", other + 1))
        };
        let in_step = statuses.iter().filter(synced).count();
        stoppers.len() == 1 && stoppers[0] != node && in_step > 2 && self.is_tidy()
    }

    /// True if all nodes are members with a vote and hear each other: then submissions are ordered soon.
    pub(super) fn is_tidy(&self) -> bool {
        let nodes = || 0..self.machines.len();
        let cut = |(a, b)| a != b && self.network.is_cut(a, b);
        let pairs = || nodes().flat_map(|a| nodes().map(move |b| (a, b)));
        let is_paused = |machine: &crate::machine::Machine| {
            let process = machine.process.as_ref();
            process.is_none_or(|p| p.free_us > self.now_us + 20_000)
        };
        self.united().is_ok() && !pairs().any(cut) && !self.machines.iter().any(is_paused)
    }
}
