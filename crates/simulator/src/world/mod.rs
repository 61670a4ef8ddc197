//! Simulated time, and everything that happens in it. [`World::run_until`] is the loop: a planned event happens to
//! the world or to a process, and its consequences are planned in turn.

mod absence;
mod control;
mod deaths;
mod disks;
mod faults;
mod flow;
mod flushes;
mod founding;
mod giving_up;
mod hangs;
mod leadership;
mod links;
mod losses;
mod lying;
mod operator;
mod outlet;
mod process;
mod reconnect;
mod start_stop;
mod survey;

pub(crate) use disks::segments;

use bytes::Bytes;
use trireme_group::{Configuration, Incarnation, Position, Uuid};

use crate::clock::Clock;
use crate::coverage::Coverage;
use crate::given_up::Attempt;
use crate::machine::{Input, Machine};
use crate::network::Network;
use crate::plan::Plan;
use crate::queue::{Lane, Queue};
use crate::random::Random;
use crate::saved_state::SavedState;
use crate::seen::{NodeId, TimeUs};
use crate::server::{Datadir, ThreadId, Transfer};
use crate::watch::Watch;

/// A planned event.
#[derive(Debug)]
pub(crate) enum Happening {
    /// A process starts on the node.
    Start(NodeId),
    /// A fault of the plan begins.
    Fault(usize),
    /// A fault of the plan ends.
    FaultEnds(usize),
    /// Two nodes try to connect.
    Connect(NodeId, NodeId),
    /// A process that was at work, or paused, looks into its inbox.
    React(NodeId, u64),
    /// A deadline of a process is reached.
    Tick(NodeId, u64),
    /// An input of a process, not of its successor.
    To(NodeId, u64, Input),
    /// A process that has left connects again.
    Reconnect(NodeId, u64),
    /// A connect is given up.
    GivesUp(NodeId, u64, Attempt),
    /// A process that must die in the middle of an input has done too few steps for that.
    Dies(NodeId, u64),
    /// The time limit of a leaving process is reached.
    LeaveEnds(NodeId, u64),
    /// A state transfer ends.
    TransferEnds(NodeId, u64, Box<Transfer>),
    /// After a blackout, an operator compares the databases and bootstraps.
    Bootstrap,
}

impl Lane for Happening {
    fn lane(&self) -> u32 {
        let node = match self {
            Happening::To(node, ..)
            | Happening::React(node, _)
            | Happening::Tick(node, _)
            | Happening::Start(node)
            | Happening::Reconnect(node, _)
            | Happening::GivesUp(node, ..)
            | Happening::Dies(node, _)
            | Happening::LeaveEnds(node, _)
            | Happening::TransferEnds(node, ..) => *node,
            // Events of several nodes come first.
            Happening::Fault(_)
            | Happening::FaultEnds(_)
            | Happening::Connect(..)
            | Happening::Bootstrap => return 0,
        };
        node as u32 + 1
    }
}

/// The whole simulation of one plan.
pub struct World {
    /// The plan, decided before the run.
    pub plan: Plan,
    /// The present time.
    pub now_us: TimeUs,
    /// The nodes.
    pub machines: Vec<Machine>,
    /// The watch, which shows all events to the invariants.
    pub watch: Watch,
    /// The counts of events.
    pub coverage: Coverage,
    /// Number of events so far.
    pub events: u64,
    pub(crate) queue: Queue<Happening>,
    pub(crate) network: Network,
    pub(crate) random: Random,
    pub(crate) server_random: Random,
    pub(crate) disk_random: Random,
    pub(crate) lie_random: Random,
    /// True while clients begin new transactions.
    pub(crate) busy: bool,
    /// True after the last fault.
    pub(crate) calm: bool,
    /// True once all nodes have been synced at the same time.
    pub(crate) formed: bool,
    /// True while operators work after a blackout: nothing starts by itself.
    pub(crate) dark: bool,
    /// The requested overrides: node and process, and their ids.
    pub(crate) overrides: Vec<(NodeId, u64, Uuid)>,
    /// A fault that waits for the next state transfer.
    pub(crate) transfer_fault: Option<usize>,
    /// Every configuration delivered so far, by position. A crash must not leave any that is in force without a
    /// majority.
    pub(crate) delivered: Vec<(Position, Configuration)>,
    /// The forced views that were delivered anywhere. A node that does not know them is on an abandoned branch.
    pub(crate) in_effect: Vec<Uuid>,
    // Buffers, kept for their capacity.
    pub(crate) outbox: Vec<(Incarnation, Bytes)>,
    pub(crate) runnable: Vec<ThreadId>,
    pub(crate) transfers: Vec<Transfer>,
    pub(crate) views: Vec<(Position, Configuration)>,
}

impl World {
    /// A world at its beginning.
    pub fn new(plan: Plan, watch: Watch) -> World {
        let mut random = Random::new(plan.seed, 3);
        let machines = plan
            .nodes
            .iter()
            .map(|node| Machine {
                replica: trireme_group::ReplicaId(random.uuid()),
                promised: Default::default(),
                last_log: Default::default(),
                saved: SavedState::default(),
                disk: Default::default(),
                mark: Default::default(),
                left: Default::default(),
                boots: 0,
                datadir: Some(Datadir::new()),
                clock: Clock::new(node.clock_offset_us, node.drift_ppm),
                weight: node.weight,
                process: None,
                incarnations: Vec::new(),
                bootstrap: false,
                dies_at_rename: None,
                listed: Vec::new(),
                astray: false,
                back_us: 0,
                isolated: 0,
                slow: 1,
                doom: Default::default(),
                dying: None,
                doomed: false,
                is_reconnected: false,
                detached: false,
                hangs_until_us: 0,
                ignores: None,
                ignored_until_us: 0,
                votes_fail: None,
                attempts: Default::default(),
                aside: None,
                was_synced: false,
            })
            .collect();
        let mut world = World {
            now_us: 0,
            machines,
            watch,
            coverage: Coverage::default(),
            events: 0,
            queue: Queue::new(plan.links_apart),
            network: Network::new(&plan),
            server_random: Random::new(plan.seed, 4),
            disk_random: Random::new(plan.seed, 10),
            lie_random: Random::new(plan.seed, 14),
            random,
            busy: true,
            calm: false,
            formed: false,
            dark: false,
            overrides: Vec::new(),
            transfer_fault: None,
            delivered: Vec::new(),
            in_effect: Vec::new(),
            outbox: Vec::new(),
            runnable: Vec::new(),
            transfers: Vec::new(),
            views: Vec::new(),
            plan,
        };
        world.machines[0].bootstrap = world.plan.founding.is_none();
        for node in 0..world.machines.len() {
            let at = world.plan.nodes[node].start_us.min(world.plan.calm_us);
            world.queue.push(at, Happening::Start(node));
            for other in node + 1..world.machines.len() {
                world.queue.push(0, Happening::Connect(node, other));
            }
        }
        for (index, (at, _)) in world.plan.faults.iter().enumerate() {
            world.queue.push(*at, Happening::Fault(index));
        }
        world
    }

    /// Runs until this time, or until an invariant is violated.
    pub fn run_until(&mut self, until_us: TimeUs) {
        while self.watch.violation.is_none() && self.advance(until_us) {}
        self.now_us = until_us;
    }

    /// Lets the next event happen, if one is due by then.
    pub(crate) fn advance(&mut self, until_us: TimeUs) -> bool {
        let Some((at, happening)) = self.queue.pop(until_us) else {
            return false;
        };
        self.now_us = at;
        self.events += 1;
        match self.plan.liar {
            Some(_) => self.happens_among_liars(happening),
            None => self.happens(happening),
        }
        true
    }

    fn happens(&mut self, happening: Happening) {
        match happening {
            Happening::To(node, start, input) => self.input(node, start, input),
            Happening::React(node, start) => self.react(node, start),
            Happening::Tick(node, start) => self.tick(node, start),
            Happening::Start(node) => self.start(node),
            Happening::Fault(index) => self.fault(index),
            Happening::FaultEnds(index) => self.fault_ends(index),
            Happening::Connect(a, b) => self.connect(a, b),
            Happening::Reconnect(node, start) => self.reconnect(node, start),
            Happening::GivesUp(node, start, attempt) => self.gives_up(node, start, attempt),
            Happening::Dies(node, start) => self.dies(node, start),
            Happening::LeaveEnds(node, start) => self.leave_ends(node, start),
            Happening::TransferEnds(node, start, transfer) => {
                self.transfer_ends(node, start, *transfer)
            }
            Happening::Bootstrap => self.bootstrap(),
        }
    }

    /// The nodes with a database.
    pub fn data_nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.machines.len()).filter(|node| !self.plan.nodes[*node].arbitrator)
    }

    /// Prints a line of the story, if there is one.
    pub(crate) fn tell(&mut self, line: impl FnOnce() -> String) {
        self.watch.tell(self.now_us, line);
    }
}
