//! The plan of one server: its settings, and its clients' load.

use crate::random::Random;
use crate::seen::TimeUs;

/// A range of durations in microseconds: from, to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub TimeUs, pub TimeUs);

impl Span {
    /// A random time of the span, at least 1 us.
    pub fn draw(self, random: &mut Random) -> TimeUs {
        random.within(self.0..=self.1.max(self.0)).max(1)
    }

    /// The span multiplied by this factor.
    pub fn times(self, factor: u64) -> Span {
        Span(self.0 * factor, self.1 * factor)
    }
}

/// `innodb_flush_log_at_trx_commit`: the losses of the database in a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// 1: a crash takes nothing.
    EachCommit,
    /// 2: a kill takes nothing, a power loss takes up to a second.
    WriteEachCommit,
    /// 0: any crash takes up to a second.
    EachSecond,
}

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct ServerPlan {
    /// `wsrep_slave_threads`.
    pub appliers: usize,
    /// Durability of the database.
    pub flush: Flush,
    /// Of a million write-sets from others, so many fail to apply on this node only. Then the members hold an error
    /// vote, and this node is expelled.
    pub apply_errors_per_million: u64,
    /// The row whose write kills the process when the server applies it.
    pub dies_of_row: Option<u32>,
    /// `wsrep_retry_autocommit`.
    pub retry_autocommit: bool,
    /// The durations of the server's actions.
    pub speed: Speed,
    /// The load of its clients.
    pub load: Workload,
    /// The actions of its administrator.
    pub admin: AdminPlan,
}

/// The durations of actions in the server.
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    /// A statement of a client, and a client's write of a row.
    pub statement_us: Span,
    /// An applier's write of a row.
    pub apply_us: Span,
    /// Any stage of a commit, a rollback or a callback.
    pub stage_us: Span,
    /// The view callback: it writes to two tables.
    pub view_us: Span,
    /// A total-order action.
    pub ddl_us: Span,
    /// Start of the storage engine.
    pub start_us: Span,
    /// A state transfer.
    pub transfer_us: Span,
    /// `innodb_lock_wait_timeout`.
    pub lock_wait_us: TimeUs,
    /// `repl.causal_read_timeout`.
    pub sync_wait_us: TimeUs,
}

/// The load of one server's clients.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Number of clients.
    pub clients: usize,
    /// Time between two transactions.
    pub think_us: Span,
    /// DDL is on the first so many tables; the rows belong to four tables, in turn.
    pub tables: u32,
    /// Number of rows.
    pub keys: u32,
    /// Number of hot rows; they are the first ones.
    pub hot_keys: u32,
    /// Percentage of the writes that go to hot rows.
    pub hot_percent: u64,
    /// Maximum number of rows that a transaction writes or locks; the minimum is 1.
    pub writes_max: u64,
    /// Maximum number of further rows that a transaction reads; the minimum is 0, and 1 if it only reads.
    pub reads_max: u64,
    /// Percentage of a transaction's rows that are locked only, as by SELECT .. FOR UPDATE. An applier that needs
    /// such a row meets a lock without a key: the transaction may pass certification, and then it replays.
    pub lock_only_percent: u64,
    /// Percentage of transactions that only read.
    pub read_only_percent: u64,
    /// Percentage of transactions that first ask for a current read (`wsrep_sync_wait`).
    pub current_percent: u64,
    /// Percentage of the transactions with one written row that the server may retry.
    pub autocommit_percent: u64,
    /// Percentage of transactions that stay open long, idle between their statements.
    pub long_percent: u64,
    /// Percentage of the transactions with several written rows that are sent in fragments
    /// (`wsrep_trx_fragment_size`).
    pub streaming_percent: u64,
    /// Percentage of transactions that the client rolls back.
    pub rollback_percent: u64,
    /// Percentage of transactions whose client goes away in the middle.
    pub vanish_percent: u64,
    /// Total-order actions (DDL), per thousand transactions.
    pub ddl_per_mille: u64,
    /// Percentage of the DDL that fails on all nodes alike: an error vote agrees on the failure.
    pub ddl_error_percent: u64,
    /// Clients run only transactions that [`super::Server::errand`] requests.
    pub by_hand: bool,
}

/// The actions of one server's administrator.
#[derive(Clone, Copy, Debug)]
pub struct AdminPlan {
    /// Time between two actions; None: no actions.
    pub every_us: Option<Span>,
    /// Duration of a pause or desync.
    pub hold_us: Span,
    /// Weights of KILL, FLUSH TABLES WITH READ LOCK, a pause as for an RSU, desync.
    pub weights: [u64; 4],
}

impl Default for ServerPlan {
    fn default() -> Self {
        ServerPlan {
            appliers: 3,
            flush: Flush::EachCommit,
            apply_errors_per_million: 0,
            dies_of_row: None,
            retry_autocommit: true,
            speed: Speed::default(),
            load: Workload::default(),
            admin: AdminPlan::default(),
        }
    }
}

impl Default for Speed {
    fn default() -> Self {
        Speed {
            statement_us: Span(50, 400),
            apply_us: Span(20, 200),
            stage_us: Span(5, 60),
            view_us: Span(100, 1000),
            ddl_us: Span(1000, 20_000),
            start_us: Span(50_000, 400_000),
            transfer_us: Span(50_000, 3_000_000),
            lock_wait_us: 50_000_000,
            sync_wait_us: 30_000_000,
        }
    }
}

impl Default for Workload {
    fn default() -> Self {
        Workload {
            clients: 3,
            think_us: Span(1000, 20_000),
            tables: 2,
            keys: 60,
            hot_keys: 4,
            hot_percent: 15,
            writes_max: 3,
            reads_max: 2,
            lock_only_percent: 10,
            read_only_percent: 20,
            current_percent: 15,
            autocommit_percent: 50,
            long_percent: 2,
            streaming_percent: 0,
            rollback_percent: 3,
            vanish_percent: 1,
            ddl_per_mille: 2,
            ddl_error_percent: 10,
            by_hand: false,
        }
    }
}

impl Default for AdminPlan {
    fn default() -> Self {
        AdminPlan {
            every_us: None,
            hold_us: Span(1000, 300_000),
            weights: [4, 2, 1, 1],
        }
    }
}
