//! A node: what survives its processes, and the process that may run on it.

use std::collections::VecDeque;

use trireme_engine::{Counters, Engine, StageDone, StageJob};
use trireme_group::{Ballot, Configuration, Incarnation, Position, ReplicaId, Standing, Uuid};
use trireme_log::{FlushDone, FlushJob, MemoryDisk};

use crate::clock::Clock;
use crate::doom::Doom;
use crate::mark::MemoryMark;
use crate::network::{ConnectionId, Parcel};
use crate::saved_state::SavedState;
use crate::seen::{NodeId, TimeUs};
use crate::server::{Cargo, Datadir, Server, ThreadId};

/// A machine with one data directory.
pub struct Machine {
    /// Identity of the data directory (rule 14).
    pub replica: ReplicaId,
    /// Kept on disk, flushed (rule 4).
    pub promised: Ballot,
    /// Id of the log that it acknowledges with; kept likewise.
    pub last_log: Uuid,
    /// grastate.dat.
    pub saved: SavedState,
    /// Where the log lies.
    pub disk: MemoryDisk,
    /// How far the log reached, outside its volume.
    pub mark: MemoryMark,
    /// What is known of its log while no process runs.
    pub left: Left,
    /// How often the machine lost power.
    pub boots: u64,
    /// The database; with the server while a process runs.
    pub datadir: Option<Datadir>,
    /// The machine's clock.
    pub clock: Clock,
    /// `pc.weight` of its next process.
    pub weight: u8,
    /// The one that runs.
    pub process: Option<Box<Process>>,
    /// Names in the group: one for each connection of each process.
    pub incarnations: Vec<Incarnation>,
    /// The next one founds a cluster.
    pub bootstrap: bool,
    /// Who is at the addresses of its process's list, if a cluster is founded without choosing a node.
    pub listed: Vec<NodeId>,
    /// It has been told to found a history of its own, by mistake.
    pub astray: bool,
    /// When one that has ended is to be followed by another.
    pub back_us: TimeUs,
    /// How many faults isolate it now.
    pub isolated: u32,
    /// Everything takes so many times as long.
    pub slow: u64,
    /// The fate of its process.
    pub doom: Doom,
    /// Its process is about to die within what it does.
    pub dying: Option<Dying>,
    /// What is wrong with its disk makes it forget what it has acknowledged, soon.
    pub doomed: bool,
    /// Its operator sets `wsrep_cluster_address` again after a failure of its disk, and does not restart it.
    pub is_reconnected: bool,
    /// Its process has files open that take nothing any more: their volume was mounted again.
    pub detached: bool,
    /// Flushes that have begun before end then at the earliest.
    pub hangs_until_us: TimeUs,
    /// `pc.ignore_sb` or `pc.ignore_quorum` was set.
    pub ignores: bool,
    /// No promise can be kept now.
    pub votes_fail: bool,
    /// Was synced since the last fault.
    pub was_synced: bool,
}

/// How a process is about to die.
#[derive(Clone, Copy, Debug)]
pub struct Dying {
    /// The machine loses power.
    pub power_loss: bool,
    /// What it has acknowledged dies with it.
    pub forgets: bool,
}

/// What an ended process has left of its log.
#[derive(Clone, Debug, Default)]
pub struct Left {
    /// Nothing that this replica ever acknowledged is missing.
    pub intact: bool,
    /// Committed, as far as it knew.
    pub commit: Position,
    /// In the past of the branch that it was on.
    pub overrides: Vec<Uuid>,
}

/// What happens to one process.
#[derive(Debug)]
pub enum Input {
    /// A frame came in.
    Frame(NodeId, Parcel),
    /// A connection is up.
    LinkUp(NodeId, ConnectionId),
    /// A connection is down.
    LinkDown(NodeId, ConnectionId),
    /// An event that needs no more than to be handed on.
    Group(Box<trireme_group::Event>),
    /// A thread of the server goes on, if it still is to at this time.
    Step(ThreadId, TimeUs),
    /// What the joiner waits for is here, or will never be.
    ScriptEnded(Option<Cargo>),
    /// The donor's part is done, which this thread has waited for.
    DonationEnded(ThreadId, bool),
    /// disconnect() is called.
    Leave,
    /// The flusher is done with a flush.
    Flushed(Job<FlushJob>),
    /// The reactor does the flush that it has put off.
    OwnFlush,
    /// The stager is done with a piece of a large payload.
    Staged(Job<StageJob>),
}

/// A job on the disk that takes its time: what it does takes effect when it begins, or when it ends. Between the two, power
/// may be lost, and more be written.
#[derive(Debug)]
pub enum Job<J: Run> {
    /// To be run when it ends.
    Due(J),
    /// It ran when it began.
    Done(J::Done),
}

/// What a thread of the provider runs without the node's lock.
pub trait Run: Sized {
    /// What the engine is told.
    type Done;
    /// Does it.
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

impl<J: Run> Job<J> {
    /// One that begins now.
    pub fn begin(job: J, at_once: bool) -> Job<J> {
        match at_once {
            true => Job::Done(job.run_now()),
            false => Job::Due(job),
        }
    }

    /// It ends now.
    pub fn end(self) -> J::Done {
        match self {
            Job::Due(job) => job.run_now(),
            Job::Done(done) => done,
        }
    }
}

/// How far a process has come.
#[derive(Debug, Default)]
pub struct Progress {
    /// connect() has returned.
    pub admitted: bool,
    /// The node has left and told its server so.
    pub closed: bool,
    /// It cannot go on, and why.
    pub fatal: Option<String>,
    /// The cluster will not have it, and why.
    pub refused: Option<String>,
    /// Number (from 1) of the node that its log last told an operator to make primary, without those who are missing.
    pub advised: Option<usize>,
    /// Its log told last that others are primary without an override of its own, and how to join them.
    pub excluded: bool,
    /// It lets the cluster go on with the best that these have; not seen yet.
    pub reforms_with: Vec<Incarnation>,
    /// It can keep nothing any more, and why.
    pub failed: Option<String>,
    /// What it says that its log holds, in which ballot, with what is about to leave it ...
    pub acknowledged: Option<(Ballot, Position)>,
    /// ... and has said.
    pub has_acknowledged: (Ballot, Position),
    /// Flushes of its log that are due.
    pub flushes: Vec<FlushJob>,
    /// One that the reactor is to do itself, once what has come in already shares it.
    pub own_flush: Option<FlushJob>,
    /// The reactor has had the node last, not a thread of the server.
    pub in_reactor: bool,
    /// Pieces of large payloads that it has begun to write.
    pub stages: Vec<StageJob>,
    /// Its history, once it is known.
    pub history: Uuid,
    /// Something was appended.
    pub appended: bool,
    /// Everything has waited for the disk: a ballot was promised, a configuration appended.
    pub waited: bool,
    /// Something else came out.
    pub acted: bool,
    /// Incremental transfers that it has received.
    pub ists: u64,
    /// Its database was found to be beyond a fork, so often.
    pub forks: u64,
}

/// One process of a node.
pub struct Process {
    /// Number of its connection to the group: 1, 2, .. on its data directory.
    pub start: u64,
    /// Number of its first one: it has left and come back since, if they differ.
    pub first_start: u64,
    /// Its name in the group.
    pub incarnation: Incarnation,
    /// Group, replicator and log.
    pub engine: Engine,
    /// The server above.
    pub server: Server,
    /// See there.
    pub progress: Progress,
    /// What has happened while it was at work, or paused.
    pub inbox: VecDeque<Input>,
    /// It will look into the inbox.
    pub reacting: bool,
    /// At work, or paused, until then.
    pub free_us: TimeUs,
    /// When a tick is planned.
    pub tick_us: TimeUs,
    /// When each thread of the server goes on; 0: not planned.
    pub steps_us: Vec<TimeUs>,
    /// disconnect() was called then.
    pub leaving_us: Option<TimeUs>,
    /// It goes on without a connection after that, and connects again.
    pub returns: bool,
    /// Its disk has failed: it is without a connection until an operator has seen to it.
    pub cut_off: bool,
    /// Flushes of its disk that had failed before it connected.
    pub failed_syncs_before: u64,
    /// Committed, as far as it knows.
    pub commit: Position,
    /// The group's standing as it was seen last.
    pub standing: Standing,
    /// It was left out of flow control when it was looked at last.
    pub left_out: bool,
    /// Since when one member alone has kept its clients waiting.
    pub held_up_us: Option<TimeUs>,
    /// Holds its vote, by its own delivered configuration.
    pub voter: bool,
    /// Nothing that this replica ever acknowledged is missing.
    pub intact: bool,
    /// Configurations in its log, committed or not, with their positions.
    pub configurations: Vec<(Position, Configuration)>,
    /// Position of the control state that was shown last.
    pub control_shown: Position,
    /// What the connection's log has come upon, as far as it was counted.
    pub counted: Counters,
}

impl Machine {
    /// Soon it will have forgotten what it has acknowledged.
    pub fn will_forget(&self) -> bool {
        self.doomed || self.dying.is_some_and(|dying| dying.forgets)
    }

    /// How often processes have connected.
    pub fn starts(&self) -> u64 {
        self.incarnations.len() as u64
    }

    /// The name in the group in the connection with this number.
    pub fn incarnation(&self, start: u64) -> Incarnation {
        self.incarnations[start as usize - 1]
    }

    /// The process in the connection with this number, if it still is.
    pub fn running(&mut self, start: u64) -> Option<&mut Process> {
        self.process
            .as_deref_mut()
            .filter(|process| process.start == start)
    }

    /// The process that was in the connection with this number, if it still lives: what happens within
    /// the server goes on whatever becomes of the connection.
    pub fn alive(&mut self, start: u64) -> Option<&mut Process> {
        self.process
            .as_deref_mut()
            .filter(|process| (process.first_start..=process.start).contains(&start))
    }
}

impl Process {
    /// The connection is gone, and the server lives.
    pub fn loses_connection(&mut self) {
        self.inbox.retain(|input| !input.is_of_connection());
        self.tick_us = TimeUs::MAX;
        self.standing = Standing::Outside;
        (self.voter, self.intact) = (false, false);
        self.configurations.clear();
    }
}

impl Input {
    /// Concerns the connection, not only the process.
    pub fn is_of_connection(&self) -> bool {
        match self {
            Input::Frame(..)
            | Input::LinkUp(..)
            | Input::LinkDown(..)
            | Input::Group(_)
            | Input::Flushed(_)
            | Input::OwnFlush
            | Input::Staged(_)
            | Input::Leave => true,
            Input::Step(..) | Input::ScriptEnded(_) | Input::DonationEnded(..) => false,
        }
    }

    /// The connection's own thread takes it in, not one of the server's, nor the flusher.
    pub fn is_for_reactor(&self) -> bool {
        match self {
            Input::Frame(..)
            | Input::LinkUp(..)
            | Input::LinkDown(..)
            | Input::Group(_)
            | Input::OwnFlush
            | Input::Staged(_) => true,
            Input::Step(..)
            | Input::ScriptEnded(_)
            | Input::DonationEnded(..)
            | Input::Flushed(_)
            | Input::Leave => false,
        }
    }
}
