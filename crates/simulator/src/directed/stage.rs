//! The acts of a directed schedule; those of the clients are in `clients`, its observations in `sight`.

mod clients;
mod sight;

use std::collections::{BTreeMap, BTreeSet};

use trireme_group::{ComponentState, Config, Entry, Position};
use trireme_replicator::Code;

use super::cluster::{N1, N2, NEVER_US};
use crate::fault::Fault;
use crate::saved_state::SavedState;
use crate::seen::{ClientTrx, NodeId, Seen, TimeUs};
use crate::world::{Happening, World};

/// Time limit for each event for which a schedule waits.
const TIMEOUT_US: TimeUs = 30_000_000;

/// The situation was not reached: the event for which the schedule waited in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed(pub String);

/// The result of a schedule. Err: the situation was not reached.
pub type Play = Result<(), Missed>;

/// The observed state of one node.
#[derive(Default)]
struct Known {
    log: BTreeMap<Position, Entry>,
    /// The transactions in its database.
    applied: BTreeSet<ClientTrx>,
    views: u64,
}

/// The world, with a director. Nodes are numbered from 0.
pub struct Stage<'a> {
    /// The whole world, for acts without a method here.
    pub world: &'a mut World,
    taken: usize,
    nodes: Vec<Known>,
    ended: BTreeMap<ClientTrx, Code>,
    /// Number of rows of each requested transaction.
    rows: BTreeMap<ClientTrx, usize>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(world: &'a mut World) -> Stage<'a> {
        world.watch.keep = true;
        let nodes = world.machines.iter().map(|_| Known::default()).collect();
        Stage {
            world,
            taken: 0,
            nodes,
            ended: BTreeMap::new(),
            rows: BTreeMap::new(),
        }
    }

    // ---- time ----

    /// Runs the world until this holds. Err: it did not hold within the time limit.
    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&Stage) -> bool) -> Play {
        let deadline = self.world.now_us + TIMEOUT_US;
        while !holds(self) {
            let broken = self.world.watch.violation.is_some();
            if broken || !self.world.advance(deadline) {
                return Err(Missed(what.to_owned()));
            }
            self.look();
        }
        Ok(())
    }

    /// Runs the world until this holds for one of the nodes; returns the node.
    pub fn until_one(
        &mut self,
        what: &str,
        nodes: &[NodeId],
        holds: impl Fn(&Stage, NodeId) -> bool,
    ) -> Result<NodeId, Missed> {
        let mut found = None;
        self.until(what, |stage| {
            found = nodes.iter().copied().find(|node| holds(stage, *node));
            found.is_some()
        })?;
        found.ok_or_else(|| Missed(what.to_owned()))
    }

    /// Lets this much time pass.
    pub fn pass_ms(&mut self, ms: u64) {
        let until = self.world.now_us + ms * 1000;
        self.world.run_until(until);
        self.look();
    }

    /// Checks that this holds now. Err: the situation was not reached.
    pub fn check(&self, what: &str, holds: bool) -> Play {
        match holds {
            true => Ok(()),
            false => Err(Missed(format!("{what}: it is not so"))),
        }
    }

    /// Asserts a promise of the schedule: it is violated if this does not hold now.
    pub fn must(&mut self, what: &str, holds: bool) {
        if !holds && self.world.watch.violation.is_none() {
            self.world.watch.violation = Some(("directed", format!("{what}: it is not so")));
        }
    }

    /// Runs the world until one of the nodes is leader; returns the node.
    pub fn takeover(&mut self, nodes: &[NodeId]) -> Result<NodeId, Missed> {
        self.until_one("a takeover", nodes, |stage, node| stage.is_leading(node))
    }

    /// Runs the world until all nodes are synced members with a vote.
    pub fn formed(&mut self) -> Play {
        self.until("the cluster has formed", |stage| {
            stage.world.settled().is_ok()
        })?;
        self.world.formed = true;
        self.until("all is quiet, and everybody knows", |stage| {
            let end = stage.end(0);
            let knows = |node| stage.commit(node) == end && stage.end(node) == end;
            (0..stage.nodes.len()).all(knows) && stage.world.quiet().is_ok()
        })
    }

    fn look(&mut self) {
        while let Some(sight) = self.world.watch.sights.get(self.taken) {
            self.taken += 1;
            let known = &mut self.nodes[sight.node];
            match &sight.what {
                Seen::Started { .. } | Seen::BeganAnew { .. } => known.log.clear(),
                Seen::Appended { entry } => {
                    known.log.insert(entry.position, entry.clone());
                }
                Seen::Truncated { after } => {
                    known.log.split_off(&(after + 1));
                }
                Seen::Ordered { writer, view, .. } => {
                    known.applied.extend(writer);
                    known.views += u64::from(view.is_some());
                }
                Seen::Ended { trx, code, .. } => {
                    self.ended.insert(*trx, *code);
                }
                _ => {}
            }
        }
    }

    // ---- orders ----

    /// Cuts the direction from these nodes to those, until it is healed: frames are held back.
    pub fn cut(&mut self, from: &[NodeId], to: &[NodeId]) {
        self.world
            .tell(|| format!("ORDER cut {} -> {}", names(from), names(to)));
        for (from, to) in pairs(from, to) {
            if !self.world.network.is_cut(from, to) {
                self.world.network.cut(from, to);
            }
        }
    }

    /// Cuts both directions between these nodes.
    pub fn part(&mut self, some: &[NodeId], others: &[NodeId]) {
        self.cut(some, others);
        self.cut(others, some);
    }

    /// Ends a [`Stage::cut`]: the held frames arrive, and all later ones.
    pub fn heal(&mut self, from: &[NodeId], to: &[NodeId]) {
        self.world
            .tell(|| format!("ORDER heal {} -> {}", names(from), names(to)));
        for (from, to) in pairs(from, to) {
            if self.world.network.is_cut(from, to) {
                self.world.heal(from, to);
            }
        }
    }

    /// Heals both directions between these nodes.
    pub fn join(&mut self, some: &[NodeId], others: &[NodeId]) {
        self.heal(some, others);
        self.heal(others, some);
    }

    /// Lets all nodes lose each other, until each knows that it has no majority.
    pub fn scatter(&mut self, all: &[NodeId]) -> Play {
        self.part(all, all);
        self.until("nobody is primary", |stage| {
            let mut component_states = all.iter().map(|node| stage.component_state(*node));
            component_states.all(|component_state| component_state == ComponentState::NonPrimary)
        })
    }

    /// Lets all nodes lose each other; then n1 and n2 meet again, and an operator makes n1 primary (`pc.bootstrap`).
    pub fn force_apart(&mut self, all: &[NodeId]) -> Play {
        self.scatter(all)?;
        self.join(&[N1], &[N2]);
        self.pass_ms(500);
        self.strike(Fault::Override { node: N1 });
        Ok(())
    }

    /// Lets these two meet; then an operator makes `founder` primary (`pc.bootstrap`). The promiser promises, and does not
    /// get the view, which is on the founder's disk. They have lost each other again.
    pub fn begin_override(&mut self, founder: NodeId, promiser: NodeId) -> Play {
        self.join(&[promiser], &[founder]);
        self.pass_ms(500);
        let (end, term) = (self.end(founder), self.term(promiser));
        self.strike(Fault::Override { node: founder });
        self.until("the other one promises", |s| s.term(promiser) > term)?;
        self.cut(&[founder], &[promiser]);
        self.until("the founder has its view", |s| s.end(founder) > end)?;
        self.pass_ms(100);
        self.cut(&[promiser], &[founder]);
        self.reset(promiser, founder);
        Ok(())
    }

    /// Breaks the connection; frames that are under way or held back are lost. A new connection comes up when neither
    /// direction is cut.
    pub fn reset(&mut self, a: NodeId, b: NodeId) {
        self.world
            .tell(|| format!("ORDER reset n{} - n{}", a + 1, b + 1));
        self.world.break_link(a, b);
    }

    /// Makes the volume of the node's log and promises fail all writes.
    pub fn fail_device(&mut self, node: NodeId) {
        self.world
            .tell(|| format!("ORDER the device of n{} fails", node + 1));
        self.world.fail_device(node);
    }

    /// Mounts the volume again; all unflushed data is lost.
    pub fn remount(&mut self, node: NodeId) {
        self.world.tell(|| format!("ORDER remount n{}", node + 1));
        self.world.remount(node, |_| false);
    }

    /// Makes flushes of the node's log and promises hang for at least this time.
    pub fn hang(&mut self, node: NodeId, ms: u64) {
        self.world
            .tell(|| format!("ORDER flushes of n{} hang for {ms} ms", node + 1));
        self.world.machines[node].hangs_until_us = self.world.now_us + ms * 1000;
    }

    /// Leaves an empty directory in the place of the volume of a stopped node's log. The volume is back when the next
    /// connection of the node has ended.
    pub fn unmount(&mut self, node: NodeId) {
        self.world.unmount(node);
    }

    /// SIGSTOP.
    pub fn pause(&mut self, node: NodeId) {
        self.world.tell(|| format!("ORDER pause n{}", node + 1));
        self.world.suspend(node);
    }

    /// SIGCONT.
    pub fn resume(&mut self, node: NodeId) {
        self.world.resume(node);
    }

    /// kill -9; with `power_loss` the machine loses power. [`Stage::start`] starts a new process.
    pub fn crash(&mut self, node: NodeId, power_loss: bool) {
        self.world.tell(|| format!("ORDER crash n{}", node + 1));
        self.world.machines[node].back_us = NEVER_US;
        self.world.crash(node, power_loss);
        self.look();
    }

    /// The machine loses power, and all unflushed data is lost; `crash` alone leaves a random part of it.
    pub fn lose_power(&mut self, node: NodeId) {
        self.world.machines[node].disk.lose_power(|| false);
        self.crash(node, true);
    }

    /// kill -9, and the data directory is lost; a new process starts on an empty one.
    pub fn wipe(&mut self, node: NodeId) {
        self.world.tell(|| format!("ORDER wipe n{}", node + 1));
        self.world.start_empty(node);
        self.look();
    }

    /// A graceful stop; [`Stage::start`] starts a new process.
    pub fn leave(&mut self, node: NodeId) {
        self.world.tell(|| format!("ORDER leave n{}", node + 1));
        self.world.machines[node].back_us = NEVER_US;
        self.world.leave(node);
    }

    /// As [`Stage::leave`], until the process has ended.
    pub fn leave_until_gone(&mut self, node: NodeId) -> Play {
        self.leave(node);
        self.until("it has left", |stage| stage.process(node).is_none())
    }

    /// Copies a stopped node's log and votes over those of another stopped node, whose database may be a little
    /// older.
    pub fn copy(&mut self, from: NodeId, to: NodeId) {
        self.world
            .tell(|| format!("ORDER copy n{} to n{}", from + 1, to + 1));
        let source = &self.world.machines[from];
        let (replica, promised, last_log) = (source.replica, source.promised, source.last_log);
        let (disk, left) = (source.disk.copy(), source.left.clone());
        let machine = &mut self.world.machines[to];
        (machine.replica, machine.promised, machine.last_log) = (replica, promised, last_log);
        (machine.disk, machine.left) = (disk, left);
    }

    /// Acts as an operator who removes a stopped node's grastate.dat and bootstraps the node.
    pub fn bootstrap_without_state(&mut self, node: NodeId) {
        let machine = &mut self.world.machines[node];
        (machine.saved, machine.bootstrap) = (SavedState::default(), true);
        self.start(node);
    }

    /// Starts a new process on the node, if none runs.
    pub fn start(&mut self, node: NodeId) {
        self.world.start(node);
        self.look();
    }

    /// Carries out a fault with an immediate effect, such as `pc.bootstrap`, whether or not the world would allow it;
    /// the fault does not end by itself.
    pub fn strike(&mut self, fault: Fault) {
        self.world.tell(|| format!("ORDER {fault}"));
        self.world.strike(&fault);
        self.look();
    }

    /// Lets the process take so many more steps that outlive it, then die in the middle of an input, or soon.
    pub fn die_after(&mut self, node: NodeId, steps: u64, power_loss: bool) -> Play {
        self.world.doom_after(node, steps, power_loss);
        self.until("it is dead", |stage| stage.process(node).is_none())
    }

    /// As [`Stage::die_after`], but the steps count from the next renaming or removal of a file on the node's disk, and
    /// the process is killed.
    pub fn die_at_rename(&mut self, node: NodeId, steps: u64) -> Play {
        self.world.doom_at_rename(node, steps);
        self.until("it is dead", |stage| stage.process(node).is_none())
    }

    /// Changes the configuration of the node's group, at most as long as its connection lasts.
    pub fn configure(&mut self, node: NodeId, change: impl FnOnce(&mut Config)) {
        let process = self.world.machines[node].process.as_mut();
        if let Some(group) = process.and_then(|process| process.engine.group_mut()) {
            change(group.config_mut());
        }
    }

    /// Lets the node's administrator desync and pause the node, for the time of its plan.
    pub fn hold_still(&mut self, node: NodeId) {
        self.world
            .tell(|| format!("ORDER n{}: hold still", node + 1));
        if let Some(process) = &mut self.world.machines[node].process {
            process.server.hold_still();
        }
        self.world.settle(node);
    }

    /// The same by FLUSH TABLES WITH READ LOCK.
    pub fn flush_tables(&mut self, node: NodeId) {
        self.world
            .tell(|| format!("ORDER n{}: flush tables with read lock", node + 1));
        if let Some(process) = &mut self.world.machines[node].process {
            process.server.flush_tables();
        }
        self.world.settle(node);
    }

    /// True while the node's administrator pauses it.
    pub fn is_held_still(&self, node: NodeId) -> bool {
        self.process(node)
            .is_some_and(|process| process.server.is_held_still())
    }

    /// Slows down the node's appliers by this factor, for good.
    pub fn slow_appliers(&mut self, node: NodeId, factor: u64) {
        self.strike(Fault::SlowAppliers {
            node,
            factor,
            for_us: 0,
        });
    }

    /// Slows down the node's disk and processor by this factor.
    pub fn slow(&mut self, node: NodeId, factor: u64) {
        self.world.machines[node].slow = factor;
    }

    /// Ends all faults: everything is healed, all nodes run.
    pub(super) fn clear(&mut self) {
        self.world.watch.keep = false;
        self.world.plan.calm_us = self.world.now_us;
        let nodes: Vec<NodeId> = (0..self.nodes.len()).collect();
        for (from, to) in pairs(&nodes, &nodes) {
            if self.world.network.is_cut(from, to) {
                self.world.heal(from, to);
            }
        }
        for node in nodes {
            self.world.machines[node].slow = 1;
            self.resume(node);
            let at = self.world.now_us + 1_000;
            self.world.queue.push(at, Happening::Start(node));
        }
    }
}

fn pairs(from: &[NodeId], to: &[NodeId]) -> Vec<(NodeId, NodeId)> {
    let all = from.iter().flat_map(|a| to.iter().map(move |b| (*a, *b)));
    all.filter(|(a, b)| a != b).collect()
}

fn names(nodes: &[NodeId]) -> String {
    let names: Vec<String> = nodes.iter().map(|node| format!("n{}", node + 1)).collect();
    names.join(",")
}
