//! Kills processes in the middle of an input: kill -9, or a power loss, between any two effects of one pump.

use trireme_log::Durability;

use super::{Happening, World};
use crate::doom::Doom;
use crate::machine::Dying;
use crate::seen::{NodeId, TimeUs};

/// A process that has not used up its steps by then dies all the same.
const TIMEOUT_US: TimeUs = 100_000;
/// Maximum number of steps before the death.
const STEPS: u64 = 30;
/// Probability that a process dies while it starts on the log of a dead one.
const IN_RECOVERY_PERCENT: u64 = 10;

impl World {
    /// Lets the node's process die soon, in the middle of an input.
    pub(crate) fn doom(&mut self, node: NodeId, power_loss: bool) {
        let steps = self.disk_random.within(0..=STEPS);
        self.doom_after(node, steps, power_loss);
    }

    /// The same, after so many steps.
    pub(crate) fn doom_after(&mut self, node: NodeId, steps: u64, power_loss: bool) {
        let Some(start) = self.note_dying(node, power_loss) else {
            return;
        };
        self.machines[node].doom.seal(steps);
        let at = self.now_us + TIMEOUT_US;
        self.queue.push(at, Happening::Dies(node, start));
    }

    /// The same, but the steps count from the next renaming or removal of a file on, however late that is.
    pub(crate) fn doom_at_rename(&mut self, node: NodeId, steps: u64) {
        if self.note_dying(node, false).is_some() {
            self.machines[node].doom.seal_at_rename(steps);
        }
    }

    /// Notes that the node's process will die. Returns the first start of the process.
    fn note_dying(&mut self, node: NodeId, power_loss: bool) -> Option<u64> {
        let forgets = !self.keeps_log(power_loss);
        let machine = &mut self.machines[node];
        let start = machine.process.as_ref()?.first_start;
        machine.dying = Some(Dying {
            power_loss,
            forgets,
        });
        Some(start)
    }

    /// The fate of a process in a new connection. A process that has just started may die while it reads the log.
    pub(crate) fn new_doom(&mut self, node: NodeId, may_die: bool) -> Doom {
        let doom = Doom::default();
        let (calm, chance) = (self.calm, self.plan.deaths_within_percent);
        let machine = &mut self.machines[node];
        machine.doom = doom.clone();
        let comes_back = machine.starts() > 1 && !calm && chance > 0;
        if may_die && comes_back && self.disk_random.percent(IN_RECOVERY_PERCENT) {
            doom.seal(self.disk_random.within(0..=STEPS));
            machine.dying = Some(Dying {
                power_loss: false,
                forgets: false,
            });
        }
        doom
    }

    /// Spares a process that may only die at its start: it has got through the start.
    pub(crate) fn is_spared(&mut self, node: NodeId) {
        self.machines[node].dying = None;
        self.machines[node].doom.spare();
    }

    /// True if the log survives a death of the process with all acknowledged entries.
    pub(crate) fn keeps_log(&self, power_loss: bool) -> bool {
        let keeps = match self.plan.durability {
            Durability::Memory => false,
            Durability::Os => !power_loss,
            Durability::Disk => true,
        };
        keeps && self.plan.recovers
    }

    /// Ends a process that has died in the middle of an input: none of its pending frames leave.
    pub(crate) fn dies_within(&mut self, node: NodeId) {
        self.outbox.clear();
        self.views.clear();
        self.transfers.clear();
        self.coverage.deaths_within += 1;
        self.tell(|| format!("n{} dies within what it does", node + 1));
        let dying = self.machines[node].dying;
        self.crash(node, dying.is_some_and(|dying| dying.power_loss));
    }

    /// Ends a process that has not used up its steps in time.
    pub(crate) fn dies(&mut self, node: NodeId, start: u64) {
        let machine = &mut self.machines[node];
        let Some(Dying { power_loss, .. }) = machine.dying else {
            return;
        };
        if machine.alive(start).is_some() {
            self.crash(node, power_loss);
        }
    }
}
