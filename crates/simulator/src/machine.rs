//! A node: the state that survives its processes, and the process that may run on it.

use std::collections::VecDeque;

use trireme_engine::{Counters, Engine, ServeDone, ServeJob, StageDone, StageJob};
use trireme_group::{
    ComponentState, Configuration, Incarnation, Member, Position, ReplicaId, Term, Uuid,
};
use trireme_log::{FlushDone, FlushJob, MemoryDisk};

use crate::clock::Clock;
use crate::doom::Doom;
use crate::given_up::Attempt;
use crate::mark::MemoryMark;
use crate::network::{BulkPayload, ConnectionId};
use crate::saved_state::SavedState;
use crate::seen::{NodeId, TimeUs};
use crate::server::{Cargo, Datadir, Server, ThreadId};

/// A machine with one data directory.
pub struct Machine {
    /// The replica id of the data directory (rule 14).
    pub replica: ReplicaId,
    /// The promised term, flushed to disk (rule 4).
    pub promised: Term,
    /// The id of the log that it acknowledges with, flushed to disk.
    pub last_log: Uuid,
    /// The contents of grastate.dat.
    pub saved: SavedState,
    /// The disk of the log.
    pub disk: MemoryDisk,
    /// The mark outside the log's volume: how far the log reached.
    pub mark: MemoryMark,
    /// The state of its log while no process runs.
    pub left: Left,
    /// Number of power losses of the machine.
    pub boots: u64,
    /// The database; None while a process runs, because the server has it then.
    pub datadir: Option<Datadir>,
    /// The machine's clock.
    pub clock: Clock,
    /// `pc.weight` of the next process.
    pub weight: u8,
    /// The process that runs.
    pub process: Option<Box<Process>>,
    /// The incarnations so far: one for each connection of each process.
    pub incarnations: Vec<Incarnation>,
    /// The next process founds a cluster.
    pub bootstrap: bool,
    /// The next process dies so many steps after it first renames or removes a file.
    pub dies_at_rename: Option<u64>,
    /// The nodes in the address list of its process, if a cluster is founded without a chosen node.
    pub listed: Vec<NodeId>,
    /// An operator has told it by mistake to found its own history.
    pub astray: bool,
    /// Time at which a new process starts after one that has ended.
    pub back_us: TimeUs,
    /// Number of faults that isolate it now.
    pub isolated: u32,
    /// Factor by which everything takes longer.
    pub slow: u64,
    /// The fate of its process.
    pub doom: Doom,
    /// Set if its process is about to die in the middle of an input.
    pub dying: Option<Dying>,
    /// A fault of its disk will soon make it forget acknowledged entries.
    pub doomed: bool,
    /// After a failure of its disk, the operator sets `wsrep_cluster_address` again and does not restart it.
    pub is_reconnected: bool,
    /// Its process has open files that fail all writes: their volume was mounted again.
    pub detached: bool,
    /// Flushes that begin before this time do not end before it.
    pub hangs_until_us: TimeUs,
    /// The option that an operator has set by mistake.
    pub ignores: Option<Ignored>,
    /// A candidacy for a forced view that the option began may last until this time.
    pub ignored_until_us: TimeUs,
    /// Why writing a promise fails now, if it does.
    pub votes_fail: Option<VotesFail>,
    /// The next connects, as long as they are given up.
    pub attempts: VecDeque<Attempt>,
    /// The volume of the log, while a connection goes on without it.
    pub aside: Option<Aside>,
    /// True if it was synced since the last fault.
    pub was_synced: bool,
}

/// A volume that is not mounted.
pub struct Aside {
    /// The disk of the log.
    pub disk: MemoryDisk,
    /// The state of that log.
    pub left: Left,
    /// The id of the log with which the node acknowledged last before.
    pub last_log: Uuid,
}

/// An option with which a node goes on without a majority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// `pc.ignore_sb`.
    SplitBrain,
    /// `pc.ignore_quorum`.
    Quorum,
}

/// Why the file of promises cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VotesFail {
    /// Its volume fails.
    Error,
    /// Its volume is full.
    NoRoom,
}

/// The way in which a process is about to die.
#[derive(Clone, Copy, Debug)]
pub struct Dying {
    /// The machine loses power.
    pub power_loss: bool,
    /// Its acknowledged entries are lost with it.
    pub forgets: bool,
}

/// The log that an ended process has left.
#[derive(Clone, Debug, Default)]
pub struct Left {
    /// The log holds everything that this replica ever acknowledged.
    pub intact: bool,
    /// The commit point, as the process knew it.
    pub commit: Position,
    /// The ids of the forced views in the past of its branch.
    pub overrides: Vec<Uuid>,
}

/// An input of one process.
#[derive(Debug)]
pub enum Input {
    /// A frame came in.
    Frame(NodeId, BulkPayload),
    /// A connection is up.
    LinkUp(NodeId, ConnectionId),
    /// A connection is down.
    LinkDown(NodeId, ConnectionId),
    /// An event that is only handed to the group.
    Group(Box<trireme_group::Event>),
    /// A thread of the server goes on, if it is still planned for this time.
    Step(ThreadId, TimeUs),
    /// The joiner's script has ended: with the state, or with nothing.
    ScriptEnded(Option<Cargo>),
    /// The donor's script has ended, for which this thread has waited; true if it succeeded.
    DonationEnded(ThreadId, bool),
    /// disconnect() is called.
    Leave,
    /// The flusher has finished a flush.
    Flushed(Job<FlushJob>),
    /// The reactor does the flush that it has put off.
    OwnFlush,
    /// The stager has finished a piece of a bulk payload.
    Staged(Job<StageJob>),
    /// The reader has read entries for a peer.
    Served(Box<Job<ServeJob>>),
}

/// A job on the disk that takes time. It takes effect either when it begins or when it ends. Meanwhile the machine
/// may lose power, and the process may write more.
#[derive(Debug)]
pub enum Job<J: Run> {
    /// The job runs when its time is over.
    Due(J),
    /// The job ran when it began.
    Done(J::Done),
}

/// A job that a thread of the provider runs without the node's lock.
pub trait Run: Sized {
    /// The result, for the engine.
    type Done;
    /// Runs the job.
    fn run_now(self) -> Self::Done;
}

impl Run for FlushJob {
    type Done = FlushDone;

    fn run_now(self) -> FlushDone {
        self.run()
    }
}

impl Run for StageJob {
    type Done = StageDone;

    fn run_now(self) -> StageDone {
        self.run()
    }
}

impl Run for ServeJob {
    type Done = ServeDone;

    fn run_now(self) -> ServeDone {
        self.run()
    }
}

impl<J: Run> Job<J> {
    /// Begins a job now; with `at_once` it takes effect now.
    pub fn begin(job: J, at_once: bool) -> Job<J> {
        match at_once {
            true => Job::Done(job.run_now()),
            false => Job::Due(job),
        }
    }

    /// Ends the job and returns its result.
    pub fn end(self) -> J::Done {
        match self {
            Job::Due(job) => job.run_now(),
            Job::Done(done) => done,
        }
    }
}

/// The state of a process, as the world has seen it.
#[derive(Debug, Default)]
pub struct Progress {
    /// connect() has returned.
    pub admitted: bool,
    /// The node has left and has told its server.
    pub closed: bool,
    /// Why it cannot go on, if so.
    pub fatal: Option<String>,
    /// Why the cluster refuses it, if so.
    pub refused: Option<String>,
    /// Number (from 1) of the node that its log last told an operator to make primary without the missing ones.
    pub advised: Option<usize>,
    /// Its log said last that others are primary without its forced view, and how to join them.
    pub excluded: bool,
    /// The nodes with which it reforms the cluster from the best log; the world has not looked at them yet.
    pub reforms_with: Vec<Incarnation>,
    /// Why it can write nothing any more, if so.
    pub failed: Option<String>,
    /// The position up to which it acknowledges its log, with the term, in frames that are about to leave ...
    pub acknowledged: Option<(Term, Position)>,
    /// ... and in frames that have left.
    pub has_acknowledged: (Term, Position),
    /// Flushes of its log that the flusher has to do.
    pub flushes: Vec<FlushJob>,
    /// A flush that the reactor does itself, so that inputs already here share it.
    pub own_flush: Option<FlushJob>,
    /// The last to hold the node was the reactor, not a thread of the server.
    pub in_reactor: bool,
    /// Pieces of bulk payloads that it has begun to write.
    pub stages: Vec<StageJob>,
    /// Reads of its log for peers that it has begun.
    pub serves: Vec<ServeJob>,
    /// Its cluster UUID, once it is known.
    pub history: Uuid,
    /// It has appended to its log.
    pub appended: bool,
    /// It has waited for the disk: it promised a term or appended a configuration.
    pub waited: bool,
    /// It has done something else with an effect outside.
    pub acted: bool,
    /// Number of reports of a flush that hangs.
    pub hangs: u64,
    /// The last such flush has not ended.
    pub is_hanging: bool,
    /// Number of transfers of leadership that it has begun because its disk does not answer.
    pub handed_for_hang: u64,
    /// Number of ISTs that it has received.
    pub ists: u64,
    /// Number of times that its database was found to be beyond a fork point.
    pub forks: u64,
}

/// One process of a node.
pub struct Process {
    /// Number of its connection to the group: 1, 2, .. on its data directory.
    pub start: u64,
    /// Number of its first connection. If it differs from `start`, the process has left and come back.
    pub first_start: u64,
    /// Its name in the group.
    pub incarnation: Incarnation,
    /// Group, replicator and log.
    pub engine: Engine,
    /// The server above the engine.
    pub server: Server,
    /// The state of the process, as the world has seen it.
    pub progress: Progress,
    /// Inputs that came while it was at work or paused.
    pub inbox: VecDeque<Input>,
    /// It is planned to look into the inbox.
    pub reacting: bool,
    /// It is at work or paused until this time.
    pub free_us: TimeUs,
    /// Time of the next tick.
    pub tick_us: TimeUs,
    /// Time at which each thread of the server goes on; 0: not planned.
    pub steps_us: Vec<TimeUs>,
    /// Time at which disconnect() was called.
    pub leaving_us: Option<TimeUs>,
    /// After disconnect() it stays without a connection and connects again.
    pub returns: bool,
    /// Its disk has failed: it has no connection until an operator repairs it.
    pub cut_off: bool,
    /// Number of failed flushes of its disk before it connected.
    pub failed_syncs_before: u64,
    /// The commit point, as far as the process knows.
    pub commit: Position,
    /// The group's component state at the last look.
    pub component_state: ComponentState,
    /// True if it was left out of flow control at the last look.
    pub left_out: bool,
    /// The time since which a single member has made its clients wait.
    pub held_up_us: Option<TimeUs>,
    /// The commit point at the last look at flow control, and the time of that look.
    pub commit_before: Position,
    /// See `commit_before`.
    pub looked_us: TimeUs,
    /// The time since which it leads.
    pub leads_us: Option<TimeUs>,
    /// The time since which it has kept leadership on a disk that does not answer, although others could lead.
    pub keeps_hanging_us: Option<TimeUs>,
    /// True if it has a vote by its own delivered configuration.
    pub voter: bool,
    /// True if its log holds everything that this replica ever acknowledged.
    pub intact: bool,
    /// The configurations in its log, committed or pending, with their positions.
    pub configurations: Vec<(Position, Configuration)>,
    /// Position of the control state at the last report to the invariants.
    pub control_shown: Position,
    /// The connection's counters, as far as the coverage has them.
    pub counted: Counters,
}

impl Machine {
    /// True if it will soon have forgotten acknowledged entries.
    pub fn will_forget(&self) -> bool {
        // A log with which it goes on without its volume ends with its connection.
        self.doomed || self.aside.is_some() || self.dying.is_some_and(|dying| dying.forgets)
    }

    /// Number of connections that its processes have made.
    pub fn starts(&self) -> u64 {
        self.incarnations.len() as u64
    }

    /// The member that its process of this incarnation is.
    pub fn member(&self, node: NodeId, incarnation: Incarnation, arbitrator: bool) -> Member {
        let name = format!("n{}", node + 1);
        // All fields by name, so that the compiler asks for a new one.
        Member {
            replica: self.replica,
            incarnation,
            weight: 0,
            full_weight: self.weight,
            voter: false,
            incoming: format!("{name}:3306"),
            address: format!("{name}:4567"),
            name,
            segment: 0,
            arbitrator,
            never_donor: false,
            app_protocol: 4,
        }
    }

    /// The incarnation of the connection with this number.
    pub fn incarnation(&self, start: u64) -> Incarnation {
        self.incarnations[start as usize - 1]
    }

    /// The process, if it is still in the connection with this number.
    pub fn running(&mut self, start: u64) -> Option<&mut Process> {
        self.process
            .as_deref_mut()
            .filter(|process| process.start == start)
    }

    /// The process that had the connection with this number, if it still lives: the server goes on even when the
    /// connection is gone.
    pub fn alive(&mut self, start: u64) -> Option<&mut Process> {
        self.process
            .as_deref_mut()
            .filter(|process| (process.first_start..=process.start).contains(&start))
    }
}

impl Process {
    /// Begins a connection. `failed_syncs`: the flushes of the log's disk that have failed so far.
    pub fn begin_connection(&mut self, start: u64, incarnation: Incarnation, failed_syncs: u64) {
        self.start = start;
        self.incarnation = incarnation;
        self.progress = Progress::default();
        self.counted = Default::default();
        self.leaving_us = None;
        self.cut_off = false;
        self.failed_syncs_before = failed_syncs;
    }

    /// Positions of the configurations in its log that it does not know to be committed.
    pub fn pending_views(&self) -> impl Iterator<Item = &Position> {
        let positions = self.configurations.iter().map(|(at, _)| at);
        positions.filter(|at| **at > self.commit)
    }

    /// Clears the state of the connection: it is gone, and the server lives.
    pub fn loses_connection(&mut self) {
        self.inbox.retain(|input| !input.is_of_connection());
        self.tick_us = TimeUs::MAX;
        self.component_state = ComponentState::Outside;
        (self.voter, self.intact) = (false, false);
        (self.leads_us, self.keeps_hanging_us) = (None, None);
        self.configurations.clear();
    }
}

impl Input {
    /// True if the input is for the connection, not only for the process.
    pub fn is_of_connection(&self) -> bool {
        match self {
            Input::Frame(..)
            | Input::LinkUp(..)
            | Input::LinkDown(..)
            | Input::Group(_)
            | Input::Flushed(_)
            | Input::OwnFlush
            | Input::Staged(_)
            | Input::Served(_)
            | Input::Leave => true,
            Input::Step(..) | Input::ScriptEnded(_) | Input::DonationEnded(..) => false,
        }
    }

    /// True if the reactor takes the input, not a thread of the server or the flusher.
    pub fn is_for_reactor(&self) -> bool {
        match self {
            Input::Frame(..)
            | Input::LinkUp(..)
            | Input::LinkDown(..)
            | Input::Group(_)
            | Input::OwnFlush
            | Input::Staged(_)
            | Input::Served(_) => true,
            Input::Step(..)
            | Input::ScriptEnded(_)
            | Input::DonationEnded(..)
            | Input::Flushed(_)
            | Input::Leave => false,
        }
    }
}
