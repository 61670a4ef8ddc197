//! A cluster that is founded without a chosen node.

use trireme_group::{Event, Group};
use trireme_log::Durability;

use super::World;
use crate::fault::Fault;
use crate::seen::NodeId;

impl World {
    fn group_of(&self, node: NodeId) -> Option<&Group> {
        Some(&self.machines[node].process.as_ref()?.engine.link()?.group)
    }

    /// True if the node has no history and waits for a founding.
    fn is_blank(&self, node: NodeId) -> bool {
        self.group_of(node).is_some_and(Group::is_blank)
    }

    /// Gives the group the processes at the addresses of the node's list, as the mesh does.
    pub(crate) fn tell_listed(&mut self, node: NodeId) {
        if !self.is_blank(node) {
            return;
        }
        let (mut members, mut missing) = (Vec::new(), Vec::new());
        for other in self.machines[node].listed.clone() {
            let start = match other == node {
                true => Some(self.machines[node].starts()),
                false => self.network.peer_of(node, other),
            };
            match start {
                Some(start) => members.push(self.machines[other].incarnation(start)),
                None => missing.push(format!("n{}", other + 1)),
            }
        }
        self.group(node, Event::Listed { members, missing });
    }

    /// True if the node may fail during a founding: it comes back with all that it had.
    pub(crate) fn may_go_while_founding(&self, fault: &Fault, node: NodeId) -> bool {
        if self.plan.founding.is_none() || self.formed {
            return false;
        }
        let keeps = match fault {
            Fault::Crash {
                power_loss: true, ..
            } => self.plan.durability == Durability::Disk,
            Fault::Crash { .. } => true,
            _ => false,
        };
        keeps || self.is_blank(node)
    }

    /// Makes all configurations equal, as the operator does: restarts the nodes with another list.
    pub(crate) fn agree_on_the_list(&mut self) {
        let Some(founding) = self.plan.founding.clone() else {
            return;
        };
        for node in 0..self.machines.len() {
            if self.is_blank(node) && self.machines[node].listed != founding.then {
                self.tell(|| format!("n{} is restarted with the others' list", node + 1));
                self.crash(node, false);
            }
        }
    }
}
