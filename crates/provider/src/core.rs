//! The node under its lock: the engine, its mesh, and its files. Events come in through [`Core`]'s methods;
//! [`Station::pump`] carries out the resulting actions (`outlet.rs`).

use std::time::Duration;

use trireme_engine::Engine;
use trireme_group as group;
use trireme_group::{ComponentState, Position};
use trireme_log::{FlushDone, FlushJob};
use trireme_node::{CommitClock, Line, Progress, Station, now_ms};
use trireme_replicator::{self as replicator, Level, NodeWait};

use crate::disk_threads::DiskThreads;
use crate::grastate::Grastate;
use crate::leader_watch::LeaderWatch;
use crate::logging::Logger;
use crate::outlet::Outlet;
use crate::waiting::Waiting;

/// `wsrep_cluster_name` and `wsrep_cluster_address`.
#[derive(Debug, Default)]
pub struct ClusterNames {
    pub name: String,
    pub address: String,
}

/// The state under the node's lock.
pub struct Core {
    pub engine: Engine,
    pub line: Option<Line>,
    /// The threads for the log's disk, which run only while connected.
    pub disk: DiskThreads,
    /// The measured times of own commits.
    pub commit_clock: CommitClock,
    pub waiting: Waiting,
    pub progress: Progress,
    /// The changes of leader during this connection.
    pub leaders: LeaderWatch,
    pub grastate: Grastate,
    /// The cluster that this connection joins.
    pub cluster: ClusterNames,
    /// `wsrep_sst_donor` of this connection.
    pub donor: String,
    /// Member id of this connection.
    pub incarnation: group::Uuid,
    /// recv() threads to wake once the lock is released.
    pub appliers_due: usize,
    pub logger: Logger,
}

impl Core {
    /// Returns a node that is not connected.
    pub fn new(engine: Engine, grastate: Grastate, logger: Logger) -> Core {
        Core {
            engine,
            line: None,
            disk: DiskThreads::default(),
            commit_clock: CommitClock::default(),
            waiting: Waiting::default(),
            progress: Progress::default(),
            leaders: LeaderWatch::default(),
            grastate,
            cluster: ClusterNames::default(),
            donor: String::new(),
            incarnation: group::Uuid::NIL,
            appliers_due: 0,
            logger,
        }
    }

    /// Returns true between connect() and disconnect().
    pub fn is_connected(&self) -> bool {
        self.line.is_some()
    }

    /// Returns true if the connection has ended for good: no peer may reach this node.
    pub fn is_cut_off(&self) -> bool {
        (self.line.as_ref()).is_some_and(|line| line.mesh.is_closed())
    }

    /// Takes in the end of a flush of `bytes` bytes of the log.
    pub fn flushed(&mut self, done: FlushDone, bytes: u64, took: Duration) {
        self.disk.note_flush(bytes, took);
        self.commit_clock.log_flushed(took.as_nanos() as u64);
        self.engine.flushed(now_ms(), done);
    }

    /// Returns the flush that is due, if the calling thread should do it itself. `put_off`: a flush that this thread
    /// got before and has not begun; it may have become too large for that.
    pub fn take_quick_flush(&mut self, put_off: Option<FlushJob>) -> Option<FlushJob> {
        // If another flush is due, the log has begun anew since.
        let put_off = put_off.filter(|_| !self.disk.has_flush_due());
        if let Some(job) = put_off.and_then(|job| self.engine.renew_flush(job)) {
            self.disk.flush(job);
        }
        self.disk.take_quick_flush()
    }

    /// Takes in the stager's results, and hands it the next jobs.
    pub fn hear_stager(&mut self) {
        while let Some(done) = self.disk.next_staged() {
            if let Some(job) = self.engine.staged(now_ms(), done) {
                self.disk.stage(job);
            }
        }
    }

    /// Hands the reader's answers to the engine.
    pub fn hear_reader(&mut self) {
        while let Some(done) = self.disk.next_served() {
            self.engine.served(done);
        }
    }

    /// Returns true while a node that began with a log waits for its last view to form again.
    pub fn is_resumed(&self) -> bool {
        (self.engine.link()).is_some_and(|link| link.group.is_resumed())
    }

    /// Returns true while a node without a history may found a cluster with others.
    pub fn is_blank(&self) -> bool {
        (self.engine.link()).is_some_and(|link| link.group.is_blank())
    }

    /// Returns true while the node waits for others before its database is needed: to found a cluster with them, or to
    /// form its last view again.
    pub fn waits_for_others(&self) -> bool {
        self.is_blank() || self.is_resumed()
    }

    /// Returns true while the node lacks others before its server can start: a component, a majority, the other founders,
    /// or a donor. False during a state transfer, in which programs of the server write the data.
    pub fn lacks_others(&self) -> bool {
        let lacks = match self.engine.replicator.waits_for() {
            Some(NodeWait::Admission | NodeWait::Donor) => true,
            Some(NodeWait::StateTransfer { .. } | NodeWait::Script { .. }) => false,
            _ => !self.is_in_primary(),
        };
        self.engine.link().is_some() && lacks || self.waits_for_others()
    }

    /// Returns true while a primary component lists this node. The state of the order may still be on its way here.
    pub fn is_in_primary(&self) -> bool {
        let link = self.engine.link();
        link.is_some_and(|link| link.group.component_state() == ComponentState::Primary)
    }

    /// Returns true while a node that began with a log has reached no node of its cluster.
    pub fn is_alone(&self) -> bool {
        let is_connected = |line: &Line| line.mesh.peers().next().is_some();
        self.is_resumed() && !self.line.as_ref().is_some_and(is_connected)
    }

    /// Returns the group's commit point on this node; 0: it is not connected.
    pub fn committed(&self) -> Position {
        self.engine.link().map_or(0, |link| link.group.commit())
    }

    /// Returns the first of these addresses at which another cluster answered, if no node of the own cluster is
    /// connected.
    pub fn only_stranger(&self, addresses: &[String]) -> Option<String> {
        self.line.as_ref()?.only_stranger(addresses).cloned()
    }

    /// Counts a change of leader, if there is one.
    pub fn watch_leader(&mut self) {
        if let Some(link) = self.engine.link() {
            self.leaders.look(&link.group);
        }
    }

    /// Hands an event to the replicator.
    pub fn node(&mut self, event: replicator::Event) {
        self.engine.node(now_ms(), event);
    }

    /// Hands an event to the group, if there is one.
    pub fn group(&mut self, event: group::Event) {
        self.engine.group(now_ms(), event);
    }

    /// Isolates the node if the signal handler of a dying server has requested it.
    pub fn heed_signal(&mut self) {
        let isolated = crate::services::isolated_by_signal();
        if let Some(line) = self.line.as_mut().filter(|_| isolated) {
            line.mesh.set_isolated(true);
        }
    }
}

impl Station for Core {
    type Outlet<'a> = Outlet<'a>;

    fn line(&mut self) -> Option<&mut Line> {
        self.line.as_mut()
    }

    fn parts(&mut self) -> (&mut Engine, Outlet<'_>) {
        let outlet = Outlet {
            line: &mut self.line,
            disk: &mut self.disk,
            waiting: &mut self.waiting,
            progress: &mut self.progress,
            grastate: &mut self.grastate,
            appliers_due: &mut self.appliers_due,
            commit_clock: &mut self.commit_clock,
            me: group::Incarnation(self.incarnation),
            logger: &self.logger,
        };
        (&mut self.engine, outlet)
    }

    fn log(&self, level: Level, text: &str) {
        self.logger.log_at(level, text);
    }
}
