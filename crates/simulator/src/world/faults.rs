//! Begins and ends faults.

use trireme_group::{ComponentState, Event, ReplicaId, Term, Uuid};
use trireme_log::MemoryDisk;

use super::{Happening, World};
use crate::fault::Fault;
use crate::machine::{Ignored, Input, Left, Machine};
use crate::mark::MemoryMark;
use crate::saved_state::SavedState;
use crate::seen::{NodeId, Seen, TimeUs};
use crate::server::Datadir;

/// The longest duration that [`crate::fault_kind::Kind::fault`] draws.
const LONGEST_FAULT_US: TimeUs = 5_000_000;

/// The longest candidacy for a forced view, with its transfer to the owner of a better log.
const CANDIDACY_US: TimeUs = 2_000_000;

impl World {
    /// Begins a fault of the plan, if it is possible now.
    pub(crate) fn fault(&mut self, index: usize) {
        let fault = self.plan.faults[index].1.clone();
        if !self.begin(index, &fault) {
            return;
        }
        self.tell(|| format!("FAULT {fault}"));
        self.coverage.fault(fault.kind());
        let lasts_us = fault.lasts_us();
        if lasts_us > 0 {
            let at = (self.now_us + lasts_us).min(self.plan.calm_us.max(self.now_us));
            self.queue.push(at, Happening::FaultEnds(index));
        }
        self.strike(&fault);
    }

    /// True if the fault may begin: the group can recover from it although a process may lose its log when it starts
    /// again.
    fn begin(&self, index: usize, fault: &Fault) -> bool {
        let runs = |node: NodeId| self.machines[node].process.is_some();
        match *fault {
            // The fault would strike another volume than the one that is mounted again later.
            Fault::DeviceFails { node, .. } if self.machines[node].aside.is_some() => false,
            Fault::Crash { node, .. }
            | Fault::Leave { node, .. }
            | Fault::Reconnect { node, .. }
            | Fault::FullDisk { node, .. }
            | Fault::FlushFails { node, .. }
            | Fault::DeviceFails { node, .. }
            | Fault::NotesFail { node, .. }
            | Fault::ReadFails { node, .. }
            | Fault::Rot { node, .. } => {
                runs(node) && self.may_go_while_founding(fault, node)
                    || runs(node) && self.survivable(node) && self.others_have_state(node)
            }
            Fault::Astray { node, .. } => {
                let has_database = !self.plan.nodes[node].arbitrator;
                has_database
                    && runs(node)
                    && self.survivable_for_good(node)
                    && self.is_served_without(node)
            }
            Fault::GiveUp { node, .. } => self.machines[node].attempts.is_empty(),
            Fault::Pause { node, .. } => runs(node),
            // With other weights, the loss of a log that is about to be lost might not be survivable.
            Fault::Weight { node, .. } => {
                runs(node) && !self.machines.iter().any(Machine::will_forget)
            }
            Fault::Slow { node, .. } => self.machines[node].slow == 1,
            Fault::Override { node } => self.operator_would(node),
            Fault::Beside { node } => {
                let process = self.machines[node].process.as_deref();
                let waits =
                    process.is_some_and(|p| p.component_state == ComponentState::NonPrimary);
                waits && self.operator_might(node)
            }
            Fault::Ignore { node, .. } => self.operator_might(node),
            Fault::Blackout { .. } | Fault::Outage { .. } => self.formed && !self.dark,
            Fault::CrashInTransfer { .. } => index < self.plan.faults.len(),
            _ => true,
        }
    }

    /// True if another node is primary in this node's history, and all such nodes will notice the end of this one.
    pub(super) fn is_served_without(&self, node: NodeId) -> bool {
        let history = |machine: &Machine| machine.process.as_ref().map(|p| p.progress.history);
        let serves = |(other, machine): &(NodeId, &Machine)| {
            let process = machine.process.as_ref();
            *other != node
                && process.is_some_and(|p| p.component_state == ComponentState::Primary)
                && history(machine) == history(&self.machines[node])
        };
        // A primary that is cut off from this node still counts on it for a while. A view proposed meanwhile with
        // this node could never be committed, nor replaced.
        let sees = |(other, _): (NodeId, &Machine)| !self.network.are_cut_apart(node, other);
        let mut serving = self.machines.iter().enumerate().filter(serves).peekable();
        serving.peek().is_some() && serving.all(sees)
    }

    /// Carries out the immediate effect of a fault.
    pub(crate) fn strike(&mut self, fault: &Fault) {
        let now = self.now_us;
        match *fault {
            Fault::Cut { .. }
            | Fault::Reset { .. }
            | Fault::Overflow { .. }
            | Fault::Duplicate { .. }
            | Fault::Delay { .. } => self.strike_network(fault),
            Fault::Pause { node, for_us } => self.pause(node, for_us),
            Fault::Slow { node, factor, .. } => self.machines[node].slow = factor,
            Fault::SlowAppliers { node, factor, .. } => self.slow_appliers(node, factor),
            Fault::Crash {
                node,
                power_loss,
                for_us,
            } => {
                self.machines[node].back_us = now + for_us;
                match self.disk_random.percent(self.plan.deaths_within_percent) {
                    true => self.doom(node, power_loss),
                    false => self.crash(node, power_loss),
                }
            }
            Fault::FullDisk { .. }
            | Fault::FlushFails { .. }
            | Fault::DeviceFails { .. }
            | Fault::NotesFail { .. }
            | Fault::FlushHangs { .. }
            | Fault::ReadFails { .. } => self.strike_disk(fault),
            Fault::Rot { node, bits, for_us } => {
                self.machines[node].back_us = now + for_us;
                self.crash(node, false);
                self.flip_bits(node, bits);
            }
            Fault::CrashInTransfer { .. } => {
                let same = |(_, planned): &(TimeUs, Fault)| planned == fault;
                self.transfer_fault = self.plan.faults.iter().position(same);
            }
            Fault::Leave { node, for_us } => {
                self.machines[node].back_us = now + for_us;
                self.leave(node);
            }
            Fault::Reconnect { node, for_us } => {
                self.machines[node].back_us = now + for_us;
                self.leave_and_return(node);
            }
            Fault::GiveUp { node, ref attempts } => {
                self.machines[node].attempts = attempts.iter().copied().collect();
            }
            Fault::Isolate { node, .. } => self.isolate(node),
            Fault::Weight { node, weight } => {
                self.machines[node].weight = weight;
                self.tell_group(node, Event::SetWeight { weight });
            }
            Fault::ClockJump { node, by_us } => {
                self.machines[node].clock.jump(by_us);
                self.plan_tick(node);
            }
            Fault::Override { node } | Fault::Beside { node } => self.force_primary(node),
            Fault::Ignore { node, quorum, .. } => {
                let option = match quorum {
                    true => Ignored::Quorum,
                    false => Ignored::SplitBrain,
                };
                self.ignore(node, Some(option));
            }
            Fault::Astray { node, .. } => {
                self.start_empty(node);
                let machine = &mut self.machines[node];
                machine.bootstrap = true;
                machine.astray = true;
            }
            Fault::Blackout { power_loss, for_us } => {
                let all = (0..self.machines.len()).collect();
                self.darken(all, power_loss, for_us);
            }
            Fault::Outage { power_loss, for_us } => {
                let nodes = self.data_nodes().collect();
                self.darken(nodes, power_loss, for_us);
            }
        }
    }

    /// The operator makes the node primary alone.
    fn force_primary(&mut self, node: NodeId) {
        let override_id = self.random.uuid();
        let start = self.machines[node].starts();
        self.overrides.push((node, start, override_id));
        let seen = Seen::Overridden { override_id };
        self.watch.see(self.now_us, node, seen);
        self.tell_group(node, Event::ForcePrimary { override_id });
    }

    fn strike_network(&mut self, fault: &Fault) {
        match *fault {
            Fault::Cut {
                ref from,
                ref to,
                both,
                ..
            } => {
                for (from, to) in directions(from, to, both) {
                    self.network.cut(from, to);
                }
            }
            Fault::Reset { a, b } => self.break_link(a, b),
            Fault::Overflow { from, to, .. } => self.network.stuff(from, to, true),
            Fault::Duplicate { from, to, .. } => self.network.double(from, to, true),
            Fault::Delay { node, by_us, .. } => {
                for (a, b) in self.around(node) {
                    self.network.slow_down(a, b, by_us);
                }
            }
            _ => {}
        }
    }

    fn strike_disk(&mut self, fault: &Fault) {
        if let Fault::FullDisk { node, .. }
        | Fault::FlushFails { node, .. }
        | Fault::DeviceFails { node, .. } = *fault
        {
            let process = self.machines[node].process.as_deref();
            let pending = process.is_some_and(|p| p.pending_views().next().is_some());
            self.coverage.spoiled_pending += u64::from(pending);
        }
        match *fault {
            Fault::FullDisk {
                node, room_bytes, ..
            } => self.spoil_disk(node, Some(room_bytes)),
            Fault::FlushFails { node, .. } => self.spoil_disk(node, None),
            Fault::DeviceFails { node, .. } => self.fail_device(node),
            Fault::NotesFail {
                node, notes, log, ..
            } => self.fail_notes(node, notes, log),
            Fault::FlushHangs { node, for_us } => {
                // A hang that is longer than any other fault ends with the faults: a cluster of two stands still meanwhile.
                let latest_us = self.plan.calm_us.max(self.now_us + LONGEST_FAULT_US);
                let until_us = (self.now_us + for_us).min(latest_us);
                let hangs_until_us = &mut self.machines[node].hangs_until_us;
                *hangs_until_us = until_us.max(*hangs_until_us);
            }
            Fault::ReadFails { node, .. } => self.fail_reads(node),
            _ => {}
        }
    }

    /// Kills these nodes at once. If an operator has to help, the help comes at the end of `for_us`.
    fn darken(&mut self, nodes: Vec<NodeId>, power_loss: bool, for_us: TimeUs) {
        let now = self.now_us;
        self.dark = true;
        for node in nodes {
            self.machines[node].back_us = now + self.random.within(1_000..=2_000_000);
            self.crash(node, power_loss);
        }
        let clear = (0..self.machines.len()).any(|node| self.is_clear(node));
        if clear && self.others_weigh(NodeId::MAX, |weight, total| weight * 2 > total) {
            // They are started again with their ordinary configuration and find each other.
            self.dark = false;
            self.coverage.by_itself += 1;
            return;
        }
        // In half of the cases the operator waits: all members come back and go on with the best log.
        if clear && self.plan.recovers && for_us / 1_000 % 2 == 0 {
            self.dark = false;
            return;
        }
        let at = (now + for_us).min(self.plan.calm_us.max(now + 1));
        self.queue.push(at, Happening::Bootstrap);
    }

    /// Ends a fault of the plan.
    pub(crate) fn fault_ends(&mut self, index: usize) {
        let fault = self.plan.faults[index].1.clone();
        self.tell(|| format!("ENDS {fault}"));
        match fault {
            Fault::Cut {
                from,
                to,
                both,
                reset,
                ..
            } => {
                for (from, to) in directions(&from, &to, both) {
                    if reset {
                        self.break_link(from, to);
                    }
                    self.heal(from, to);
                }
            }
            Fault::Overflow { from, to, .. } => {
                self.network.stuff(from, to, false);
                self.drain(from, to);
            }
            Fault::Duplicate { from, to, .. } => self.network.double(from, to, false),
            Fault::Delay { node, by_us, .. } => {
                for (a, b) in self.around(node) {
                    self.network.speed_up(a, b, by_us);
                }
            }
            Fault::Slow { node, .. } => self.machines[node].slow = 1,
            Fault::SlowAppliers { node, .. } => self.slow_appliers(node, 1),
            Fault::FullDisk { node, .. }
            | Fault::FlushFails { node, .. }
            | Fault::NotesFail { node, .. }
            | Fault::ReadFails { node, .. } => self.mend_disk(node),
            Fault::DeviceFails { node, .. } => self.remount(node, |random| random.percent(50)),
            Fault::Astray { node, .. } if self.machines[node].astray => {
                self.machines[node].astray = false;
                self.start_empty(node);
            }
            Fault::Isolate { node, .. } => self.machines[node].isolated -= 1,
            Fault::Ignore { node, .. } => self.ignore(node, None),
            _ => {}
        }
    }

    /// Sets `pc.ignore_sb` and `pc.ignore_quorum`.
    fn ignore(&mut self, node: NodeId, option: Option<Ignored>) {
        let until_us = self.now_us + CANDIDACY_US;
        let machine = &mut self.machines[node];
        machine.ignores = option;
        machine.ignored_until_us = until_us;
        let process = machine.process.as_mut();
        if let Some(group) = process.and_then(|process| process.engine.group_mut()) {
            let config = group.config_mut();
            config.ignore_split_brain = option == Some(Ignored::SplitBrain);
            config.ignore_quorum = option == Some(Ignored::Quorum);
        }
    }

    fn slow_appliers(&mut self, node: NodeId, factor: u64) {
        if let Some(process) = &mut self.machines[node].process {
            process.server.apply_slowness = factor;
        }
    }

    /// Kills the process, empties its data directory, and starts another process.
    pub(crate) fn start_empty(&mut self, node: NodeId) {
        self.machines[node].back_us = self.now_us;
        self.crash(node, false);
        let replica = ReplicaId(self.random.uuid());
        let machine = &mut self.machines[node];
        machine.replica = replica;
        machine.promised = Term::default();
        machine.last_log = Uuid::NIL;
        machine.mark = MemoryMark::default();
        machine.saved = SavedState::default();
        machine.disk = MemoryDisk::default();
        machine.left = Left::default();
        machine.datadir = Some(Datadir::new());
    }

    /// True if the node has founded its own history by mistake.
    pub(crate) fn is_astray(&self, node: NodeId) -> bool {
        let machine = &self.machines[node];
        machine.astray && machine.process.is_some()
    }

    /// All directions from and to a node.
    fn around(&self, node: NodeId) -> Vec<(NodeId, NodeId)> {
        let others = (0..self.machines.len()).filter(|other| *other != node);
        others.flat_map(|o| [(node, o), (o, node)]).collect()
    }

    /// Breaks the node's links, and lets it make no new ones.
    pub(super) fn isolate(&mut self, node: NodeId) {
        self.machines[node].isolated += 1;
        for other in (0..self.machines.len()).filter(|other| *other != node) {
            self.break_link(node, other);
        }
    }

    fn pause(&mut self, node: NodeId, for_us: TimeUs) {
        let until = (self.now_us + for_us).min(self.plan.calm_us.max(self.now_us));
        if let Some(process) = &mut self.machines[node].process {
            process.free_us = process.free_us.max(until);
        }
    }

    pub(crate) fn tell_group(&mut self, node: NodeId, event: Event) {
        let start = self.machines[node].starts();
        self.input(node, start, Input::Group(Box::new(event)));
    }

    /// Plans the death of the donor or the joiner of a state transfer that has begun, before its end.
    pub(crate) fn crash_in_transfer(
        &mut self,
        index: usize,
        donor: NodeId,
        joiner: NodeId,
        ends_us: TimeUs,
    ) {
        let Fault::CrashInTransfer {
            donor: whether_donor,
            for_us,
        } = self.plan.faults[index].1
        else {
            return;
        };
        let node = if whether_donor { donor } else { joiner };
        let power_loss = self.random.percent(30);
        let crash = Fault::Crash {
            node,
            power_loss,
            for_us,
        };
        let at = self.random.within(self.now_us..=ends_us);
        self.plan.faults.push((at, crash));
        let index = self.plan.faults.len() - 1;
        self.queue.push(at, Happening::Fault(index));
    }
}

fn directions(from: &[NodeId], to: &[NodeId], both: bool) -> Vec<(NodeId, NodeId)> {
    let there = from.iter().flat_map(|a| to.iter().map(move |b| (*a, *b)));
    let back = to.iter().flat_map(|a| from.iter().map(move |b| (*a, *b)));
    let all = there.chain(back.filter(|_| both));
    all.filter(|(a, b)| a != b).collect()
}
