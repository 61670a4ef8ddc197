//! Carries out an absence ([`crate::absence`]).

use trireme_group::ComponentState;

use super::{Happening, World};
use crate::absence::Restart;
use crate::seen::{NodeId, TimeUs};

/// Beyond the end of every run.
const NEVER_US: TimeUs = 1 << 50;

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
        if is_cut_off {
            self.machines[node].isolated += 1;
            for other in (0..self.machines.len()).filter(|other| *other != node) {
                self.break_link(node, other);
            }
        } else if let Some(process) = &mut self.machines[node].process {
            process.free_us = NEVER_US;
        }
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
        self.tell(|| format!("BACK n{}", node + 1));
        let now = self.now_us;
        let machine = &mut self.machines[node];
        if was_cut_off {
            machine.isolated -= 1;
        } else if let Some(process) = &mut machine.process {
            process.free_us = now;
            process.reacting = true;
            let react = Happening::React(node, process.start);
            self.queue.push(now, react);
        }
    }

    /// Checks that all other nodes are synced members with a vote, or were synced since the call of
    /// [`World::forget_synced`]. Err: a node that is not.
    pub fn united_without(&mut self, silent: NodeId) -> Result<(), String> {
        for node in (0..self.machines.len()).filter(|node| *node != silent) {
            let name = format!("n{}", node + 1);
            let process = self.machines[node].process.as_ref();
            let process = process.filter(|process| process.leaving_us.is_none());
            let process = process.ok_or_else(|| format!("{name} does not run, or leaves"))?;
            let link = process.engine.link();
            let link = link.ok_or_else(|| format!("{name} is not connected"))?;
            let seat = link.group.configuration().member(process.incarnation);
            let is_primary = link.group.component_state() == ComponentState::Primary;
            if !is_primary || seat.is_none_or(|member| !member.voter) {
                return Err(format!("{name} is not primary, or without a vote"));
            }
        }
        self.synced_since(|node| node != silent)
    }
}
