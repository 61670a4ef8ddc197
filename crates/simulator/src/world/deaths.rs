//! Processes that die within what they do: kill -9, or a loss of power, between any two effects of one pump.

use trireme_log::Durability;

use super::{Happening, World};
use crate::doom::Doom;
use crate::machine::Dying;
use crate::seen::{NodeId, TimeUs};

/// Who has done too little by then dies all the same.
const PATIENCE_US: TimeUs = 100_000;
/// It does so many steps yet, at most.
const STEPS: u64 = 30;
/// Chance that a process is killed while it begins with the log of one that has died.
const IN_RECOVERY_PERCENT: u64 = 10;

impl World {
    /// The node's process is to die soon, in the middle of something.
    pub(crate) fn doom(&mut self, node: NodeId, power_loss: bool) {
        let steps = self.disk_random.within(0..=STEPS);
        let forgets = !self.keeps_log(power_loss);
        let machine = &mut self.machines[node];
        let Some(process) = &machine.process else {
            return;
        };
        machine.doom.seal(steps);
        machine.dying = Some(Dying {
            power_loss,
            forgets,
        });
        let at = self.now_us + PATIENCE_US;
        let start = process.first_start;
        self.queue.push(at, Happening::Dies(node, start));
    }

    /// The fate of a process in a new connection. One that has just started may die of reading the log.
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

    /// It was to do a few steps only: it has got through what it begins with.
    pub(crate) fn is_spared(&mut self, node: NodeId) {
        self.machines[node].dying = None;
        self.machines[node].doom.spare();
    }

    /// What survives a death of a process is all that it had acknowledged.
    pub(crate) fn keeps_log(&self, power_loss: bool) -> bool {
        let keeps = match self.plan.durability {
            Durability::Memory => false,
            Durability::Os => !power_loss,
            Durability::Disk => true,
        };
        keeps && self.plan.recovers
    }

    /// The process has died in the middle of something: nothing of what it was about to send leaves it.
    pub(crate) fn dies_within(&mut self, node: NodeId) {
        self.outbox.clear();
        self.views.clear();
        self.transfers.clear();
        self.coverage.deaths_within += 1;
        self.tell(|| format!("n{} dies within what it does", node + 1));
        let dying = self.machines[node].dying;
        self.crash(node, dying.is_some_and(|dying| dying.power_loss));
    }

    /// It has not come to it.
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
