//! Carries out an absence ([`crate::absence`]).

use super::{Happening, World};
use crate::absence::Restart;
use crate::seen::{NEVER_US, NodeId};

impl World {
    /// True if the others can go on without this node.
    pub fn may_miss(&self, node: NodeId) -> bool {
        let runs = self
            .machines
            .iter()
            .all(|machine| machine.process.is_some());
        runs && self.survivable_for_good(node) && self.is_served_without(node)
    }

    /// The node says nothing from now on.
    pub fn falls_silent(&mut self, node: NodeId, is_cut_off: bool) {
        self.tell(|| format!("SILENT n{}, cut off: {is_cut_off}", node + 1));
        self.coverage.absences += 1;
        match is_cut_off {
            true => self.isolate(node),
            false => self.suspend(node),
        }
    }

    /// Stops the node's process until [`World::resume`] (SIGSTOP).
    pub(crate) fn suspend(&mut self, node: NodeId) {
        if let Some(process) = &mut self.machines[node].process {
            process.free_us = NEVER_US;
        }
    }

    /// Lets a suspended process go on (SIGCONT).
    pub(crate) fn resume(&mut self, node: NodeId) {
        let now = self.now_us;
        let suspended = self.machines[node].process.as_mut();
        let Some(process) = suspended.filter(|process| process.free_us >= NEVER_US) else {
            return;
        };
        process.free_us = now;
        process.reacting = true;
        let react = Happening::React(node, process.start);
        self.tell(|| format!("RESUME n{}", node + 1));
        self.queue.push(now, react);
    }

    /// Ends the node's process; another one starts.
    pub fn restarts(&mut self, restart: &Restart) {
        let Restart {
            node,
            is_killed,
            for_us,
        } = *restart;
        self.tell(|| format!("RESTART n{}, killed: {is_killed}", node + 1));
        self.machines[node].back_us = self.now_us + for_us;
        match is_killed {
            true => self.crash(node, false),
            false => self.leave(node),
        }
    }

    /// The node speaks again.
    pub fn speaks_again(&mut self, node: NodeId, was_cut_off: bool) {
        match was_cut_off {
            true => self.machines[node].isolated -= 1,
            false => self.resume(node),
        }
    }

    /// Checks that all other nodes are synced members with a vote, or were synced since the call of
    /// [`World::forget_synced`]. Err: a node that is not.
    pub fn united_without(&mut self, silent: NodeId) -> Result<(), String> {
        for node in (0..self.machines.len()).filter(|node| *node != silent) {
            self.voter(node)?;
        }
        self.synced_since(|node| node != silent)
    }
}
