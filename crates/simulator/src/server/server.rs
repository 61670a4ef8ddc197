//! The server, as the world sees it.

use std::collections::VecDeque;

use trireme_group::{Incarnation, Uuid};
use trireme_replicator::{Gtid, Seqno, Ticket, TrxId};

use super::admin::Admin;
use super::applier::Applier;
use super::client::Client;
use super::ctx::{Ctx, Next, ThreadId};
use super::database::Database;
use super::datadir::Datadir;
use super::errand::Errand;
use super::locks::Locks;
use super::plan::ServerPlan;
use super::state::State;
use super::streaming::{STREAMS, Stream};
use super::thread::{Thread, Waits};
use super::transfer::TransferThread;
use super::writeset::TABLES;
use crate::random::Random;
use crate::seen::{ClientTrx, NodeId, TimeUs};
use crate::watch::Watch;

/// Maximum number of state transfers of a server: one, and another whose joiner has gone.
const TRANSFERS: usize = 2;

/// One process of a database server.
pub struct Server {
    pub(super) node: NodeId,
    pub(super) start: u64,
    pub(super) plan: ServerPlan,
    /// Factor by which its appliers take longer to write a row.
    pub apply_slowness: u64,
    pub(super) db: Database,
    pub(super) locks: Locks,
    pub(super) threads: Vec<Thread>,
    pub(super) appliers: Vec<Applier>,
    pub(super) clients: Vec<Client>,
    pub(super) admin: Admin,
    pub(super) transfers: Vec<TransferThread>,

    pub(super) runnable: Vec<ThreadId>,
    /// The abort_certification() calls that have no answer yet: ticket, the victim's thread and transaction, the
    /// aborter's seqno.
    pub(super) aborts: Vec<(Ticket, ThreadId, TrxId, Seqno)>,
    /// The rollback() calls that have no answer yet.
    pub(super) rollbacks: Vec<(Ticket, TrxId)>,
    /// Transactions whose rollback fragment could not be sent yet.
    pub(super) pending_rollbacks: Vec<TrxId>,
    /// Streaming appliers.
    pub(super) streams: Vec<Option<Stream>>,
    /// True if the streaming appliers were read from their table.
    pub(super) streams_recovered: bool,
    /// The members of the last primary view.
    pub(super) last_members: Option<Vec<Incarnation>>,
    /// The incarnation of this connection.
    pub(super) me: Incarnation,
    pub(super) last_ticket: u64,
    pub(super) last_trx: TrxId,
    pub(super) last_client_trx: ClientTrx,
    pub(super) acknowledged: u64,

    /// The requested transactions that clients must run.
    pub(super) errands: VecDeque<(ClientTrx, Errand)>,
    /// True if clients begin no new transactions.
    pub(super) is_idle: bool,
    /// True if a write-set was not applied here: the node is about to be expelled.
    pub(super) failed: bool,
    /// True if an applier has killed the process.
    pub(super) died: bool,
    /// True while the server stops.
    pub(super) leaving: bool,
    /// `wsrep_ready`.
    pub(super) ready: bool,
    /// True once the storage engine is up.
    pub(super) initialized: bool,
    /// True between sst_request and sst_received.
    pub(super) is_with_scripts: bool,
    /// The number of the last primary view.
    pub(super) last_view: i64,
    /// Number of clients and DDL between the first step of a commit and the last.
    pub(super) committing: usize,
    /// The thread that pauses the provider, or is about to.
    pub(super) pauser: Option<ThreadId>,
    /// True during FLUSH TABLES WITH READ LOCK: no commit begins.
    pub(super) commits_blocked: bool,
    /// True if the last FLUSH TABLES WITH READ LOCK desynced the node; one bit for all, as in wsrep-lib.
    pub(super) desynced_on_pause: bool,
    pub(super) state: State,
}

impl Server {
    /// Starts a server on a data directory; `start` counts its processes from 1.
    pub fn new(
        datadir: Datadir,
        plan: ServerPlan,
        node: NodeId,
        start: u64,
        random: &mut Random,
    ) -> Server {
        let (appliers, clients) = (plan.appliers.max(1), plan.load.clients);
        let count = appliers + clients + 1 + TRANSFERS;
        assert!(count < 200, "more threads than a ticket can name");
        let admin = appliers + clients;
        let mut server = Server {
            node,
            start,
            db: Database::new(datadir, plan.flush),
            locks: Locks::new(TABLES, count + STREAMS),
            threads: (0..count).map(|_| Thread::default()).collect(),
            appliers: (0..appliers).map(|_| Applier::default()).collect(),
            clients: (0..clients).map(|_| Client::default()).collect(),
            admin: Admin::default(),
            transfers: (0..TRANSFERS).map(|_| TransferThread::default()).collect(),
            runnable: Vec::new(),
            aborts: Vec::new(),
            rollbacks: Vec::new(),
            pending_rollbacks: Vec::new(),
            streams: (0..STREAMS).map(|_| None).collect(),
            streams_recovered: false,
            last_members: None,
            me: Incarnation::default(),
            last_ticket: 0,
            last_trx: random.within(0..=20),
            last_client_trx: (node as u64) << 48 | start << 32,
            acknowledged: 0,
            errands: VecDeque::new(),
            is_idle: false,
            failed: false,
            died: false,
            leaving: false,
            ready: false,
            initialized: false,
            is_with_scripts: false,
            last_view: -1,
            committing: 0,
            pauser: None,
            commits_blocked: false,
            desynced_on_pause: false,
            state: State::default(),
            plan,
            apply_slowness: 1,
        };
        server.runnable.extend(appliers..=admin);
        server
    }

    /// connect() has returned OK: the first applier starts. The others start when the storage engine is up
    /// (server-contract.md#recv).
    pub fn admitted(&mut self) {
        self.start_applier(0);
        if self.initialized {
            self.storage_is_up();
        }
    }

    /// Stops the server, just before it calls disconnect(): it refuses statements.
    pub fn disconnecting(&mut self) {
        self.ready = false;
        self.leaving = true;
        self.state = State::Disconnecting;
    }

    /// Prepares a server that has left to connect again: it keeps its database and its clients.
    pub fn reconnecting(&mut self) {
        self.leaving = false;
        self.state = State::Connected;
        self.last_view = -1;
        self.forget_streams();
        for applier in &mut self.appliers {
            *applier = Applier::default();
        }
    }

    /// True if no thread is in the middle of anything: the clients' connections close when the server disconnects,
    /// and nothing is paused.
    pub fn is_done(&self) -> bool {
        let busy = self.clients.iter().any(Client::is_busy);
        !busy && !self.admin.is_busy() && self.pauser.is_none()
    }

    /// True if a write-set may still fail to apply here.
    pub fn may_fail(&self) -> bool {
        self.plan.apply_errors_per_million > 0 && !self.failed
    }

    /// True if a write-set was not applied here.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// True if the storage engine is up.
    pub fn is_running(&self) -> bool {
        self.initialized
    }

    /// Bootstraps, on a database that counts as being at `local`; a new history has another uuid.
    pub fn founds(&mut self, local: Gtid) {
        if local.uuid == self.db.position().uuid && local.seqno >= 0 {
            self.db.goes_on_above(local);
        }
    }

    /// Lets clients work. False: they finish their transactions and begin no new ones.
    pub fn set_busy(&mut self, busy: bool) {
        self.is_idle = !busy;
        if busy {
            self.wake_clients();
        }
    }

    /// Ends the failures of appliers; clients work by themselves again.
    pub fn calm(&mut self) {
        self.plan.apply_errors_per_million = 0;
        self.plan.load.by_hand = false;
        self.apply_slowness = 1;
    }

    /// Takes the threads that have become runnable since the last call.
    pub fn take_runnable(&mut self, into: &mut Vec<ThreadId>) {
        into.append(&mut self.runnable);
    }

    /// Runs the next step of a thread.
    ///
    /// # Panics
    /// When the provider has broken the contract.
    pub fn step(&mut self, thread: ThreadId, ctx: &mut Ctx) -> Next {
        let (appliers, clients) = (self.appliers.len(), self.clients.len());
        let next = match thread {
            _ if thread < appliers => self.step_applier(thread, ctx),
            _ if thread < appliers + clients => self.step_client(thread, ctx),
            _ if thread == appliers + clients => self.step_admin(thread, ctx),
            _ => self.step_transfer(thread, ctx),
        };
        self.wake_granted();
        next
    }

    /// Number of acknowledged client transactions of this process.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// The position that `--wsrep-recover` finds.
    pub fn recovered(&self) -> Gtid {
        self.db.position()
    }

    /// The same, before the server runs; afterwards it says nothing any more.
    pub fn recovered_at_start(&self) -> Option<Gtid> {
        (!self.is_running()).then(|| self.recovered())
    }

    /// The position up to which the database really holds everything; undefined if it has diverged.
    pub fn holds(&self) -> Gtid {
        self.db.datadir.holds()
    }

    /// The position of the database.
    pub fn position(&self) -> (Uuid, Seqno) {
        let position = self.db.position();
        (position.uuid, position.seqno)
    }

    /// The digest of the rows.
    pub fn digest(&self) -> u64 {
        self.db.digest()
    }

    /// Ends the server after a clean leave: everything is flushed. A client with an open transaction sees its
    /// connection break.
    pub fn stop(mut self, now_us: TimeUs, watch: &mut Watch) -> Datadir {
        self.break_connections(now_us, watch);
        // The last applier ends when the node has reported all seqnos as released. Otherwise the wait for it has
        // timed out.
        let queued = self.db.queued();
        assert!(
            queued == 0 || self.appliers_running() > 0,
            "stopped with {queued} commits that are not visible"
        );
        self.db.datadir.flush();
        self.db.datadir
    }

    /// Ends the server: it was killed, or the machine lost power.
    pub fn crash(
        mut self,
        power_loss: bool,
        now_us: TimeUs,
        random: &mut Random,
        watch: &mut Watch,
    ) -> Datadir {
        self.break_connections(now_us, watch);
        let mut datadir = self.db.datadir;
        datadir.crash(now_us, self.plan.flush, power_loss, random);
        datadir
    }

    /// The threads that wait for another thread or the node, for a reader.
    pub fn waiting(&self) -> Vec<String> {
        let asks = |who: &ThreadId| match self.threads[*who].waits {
            None => false,
            Some(Waits::Server(_)) => self.is_in_the_middle(*who),
            Some(_) => true,
        };
        let threads = (0..self.threads.len()).filter(asks);
        let mut waiting: Vec<String> = threads.map(|who| self.describe(who)).collect();
        let left = self.db.datadir.fragments().keys();
        waiting.extend(left.map(|id| format!("fragments of {id:?}, which nobody finishes")));
        waiting
    }

    fn is_in_the_middle(&self, who: ThreadId) -> bool {
        let (appliers, clients) = (self.appliers.len(), self.clients.len());
        match who {
            _ if who < appliers => self.appliers[who].is_busy(),
            _ if who < appliers + clients => self.clients[who - appliers].is_busy(),
            _ if who == appliers + clients => self.admin.is_busy(),
            _ => self.transfers[who - appliers - clients - 1].is_busy(),
        }
    }

    /// A description of a thread, for a reader.
    pub fn describe(&self, thread: ThreadId) -> String {
        let (appliers, clients) = (self.appliers.len(), self.clients.len());
        if let Some(slot) = thread.checked_sub(self.threads.len()) {
            return format!("streaming applier {:?}", self.streams[slot]);
        }
        let what = match thread {
            _ if thread < appliers => {
                format!("applier {thread} {}", self.appliers[thread].describe())
            }
            _ if thread < appliers + clients => {
                let client = thread - appliers;
                format!("client {client} {}", self.clients[client].describe())
            }
            _ if thread == appliers + clients => format!("admin {:?}", self.admin.stage),
            _ => {
                let transfer = thread - appliers - clients - 1;
                format!(
                    "transfer {transfer} {}",
                    self.transfers[transfer].describe()
                )
            }
        };
        match self.threads[thread].waits {
            None => what,
            Some(Waits::Answer(_, call)) => format!("{what}, waits in {call}"),
            Some(Waits::Row(key)) => format!("{what}, waits for row {key}"),
            Some(Waits::Table(table)) => format!("{what}, waits for table {table}"),
            Some(Waits::Server(why)) => format!("{what}, waits: {why}"),
        }
    }

    /// The index of a client, by its thread.
    pub(super) fn client_of(&self, who: ThreadId) -> Option<usize> {
        let client = who.checked_sub(self.appliers.len())?;
        (client < self.clients.len()).then_some(client)
    }
}
