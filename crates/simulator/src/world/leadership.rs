//! Checks the place of leadership.

use super::World;
use crate::plan::BadSeat;
use crate::seen::NodeId;

/// Maximum time for an input of a node that has a tenth of a processor.
const SLOW_WORK_US: u64 = 60_000;

impl World {
    /// Number of transfers of leadership by the running processes.
    pub fn leaderships_handed(&self) -> u64 {
        let groups = self.machines.iter().filter_map(|machine| {
            let link = machine.process.as_ref()?.engine.link()?;
            Some(link.group.counters().leaderships_handed)
        });
        groups.sum()
    }

    /// Err: there is no leader, or the leader is the node that must not lead in the end.
    pub fn leader_sits_well(&self) -> Result<(), String> {
        match (self.leadership(), self.plan.bad_seat) {
            (None, _) => Err(": nobody has it".to_owned()),
            (Some(node), Some((bad, why))) if node == bad => {
                Err(format!(": with n{}, which is {why:?}", node + 1))
            }
            _ => Ok(()),
        }
    }

    /// The leader; of several, the one of the highest term.
    fn leadership(&self) -> Option<NodeId> {
        let machines = self.machines.iter().enumerate();
        let holders = machines.filter_map(|(node, machine)| {
            let group = &machine.process.as_ref()?.engine.link()?.group;
            group.is_leader().then_some((group.term(), node))
        });
        holders.max().map(|(_, node)| node)
    }

    /// If the plan says so, gives the leader too little of its processor. Returns the node and its former time for an
    /// input.
    pub fn slow_leadership(&mut self) -> Option<(NodeId, u64)> {
        let node = self.leadership()?;
        let (_, why) = self.plan.bad_seat?;
        if why != BadSeat::Slow {
            return None;
        }
        self.plan.bad_seat = Some((node, why));
        let work_us = std::mem::replace(&mut self.plan.nodes[node].work_us, SLOW_WORK_US);
        Some((node, work_us))
    }
}
