//! What one server is like, and what its clients do.

use crate::random::Random;
use crate::seen::TimeUs;

/// A span of time that something takes, in microseconds: from, to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub TimeUs, pub TimeUs);

impl Span {
    /// A time of the span, at least 1 us.
    pub fn draw(self, random: &mut Random) -> TimeUs {
        random.within(self.0..=self.1.max(self.0)).max(1)
    }

    /// A span so many times as long.
    pub fn times(self, factor: u64) -> Span {
        Span(self.0 * factor, self.1 * factor)
    }
}

/// `innodb_flush_log_at_trx_commit`: what a crash takes from the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// 1: nothing.
    EachCommit,
    /// 2: a kill takes nothing, a power loss takes up to a second.
    WriteEachCommit,
    /// 0: any crash takes up to a second.
    EachSecond,
}

/// A server.
#[derive(Clone, Debug)]
pub struct ServerPlan {
    /// `wsrep_slave_threads`.
    pub appliers: usize,
    /// Durability of the database.
    pub flush: Flush,
    /// Of a million write-sets from others, so many fail to apply here, and here only: the cluster
    /// votes, and this node is thrown out.
    pub apply_errors_per_million: u64,
    /// Its process dies when it applies a write of this row.
    pub dies_of_row: Option<u32>,
    /// `wsrep_retry_autocommit`.
    pub retry_autocommit: bool,
    /// How long things take.
    pub speed: Speed,
    /// What its clients do.
    pub load: Workload,
    /// What its administrator does.
    pub admin: AdminPlan,
}

/// How long things take in the server.
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    /// A statement of a client, and its writing of a row.
    pub statement_us: Span,
    /// An applier's writing of a row.
    pub apply_us: Span,
    /// Any stage of a commit, a rollback, a callback.
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

/// What the clients of one server do.
#[derive(Clone, Debug)]
pub struct Workload {
    /// How many.
    pub clients: usize,
    /// Between two transactions.
    pub think_us: Span,
    /// DDL concerns the first so many tables; the rows belong to four, in turn.
    pub tables: u32,
    /// Rows.
    pub keys: u32,
    /// The first so many rows are hot.
    pub hot_keys: u32,
    /// Chance that a write goes to a hot one.
    pub hot_percent: u64,
    /// A transaction writes or locks 1 to so many rows.
    pub writes_max: u64,
    /// A transaction reads 0 to so many further rows; one that only reads, at least 1.
    pub reads_max: u64,
    /// Of the rows that a transaction touches: locked only, as by SELECT .. FOR UPDATE. An applier that
    /// needs such a row meets a lock without a key: the transaction may pass certification, and replays.
    pub lock_only_percent: u64,
    /// Transactions that only read.
    pub read_only_percent: u64,
    /// Transactions that ask for a current read first (`wsrep_sync_wait`).
    pub current_percent: u64,
    /// Of those that write one row: the ones that the server may retry.
    pub autocommit_percent: u64,
    /// Transactions that stay open long, idle between their statements.
    pub long_percent: u64,
    /// Of those that write several rows: sent in fragments (`wsrep_trx_fragment_size`).
    pub streaming_percent: u64,
    /// Transactions that their client rolls back.
    pub rollback_percent: u64,
    /// Transactions whose client goes away in the middle.
    pub vanish_percent: u64,
    /// Total-order actions (DDL).
    pub ddl_per_mille: u64,
    /// Of these, the ones that fail when they are executed, on all nodes alike: a vote agrees on it.
    pub ddl_error_percent: u64,
    /// Clients do nothing by themselves, only what [`super::Server::errand`] asks for.
    pub by_hand: bool,
}

/// What the administrator of one server does now and then.
#[derive(Clone, Copy, Debug)]
pub struct AdminPlan {
    /// Between two things; None: never anything.
    pub every_us: Option<Span>,
    /// How long a pause or desync lasts.
    pub hold_us: Span,
    /// Weights of KILL, FLUSH TABLES WITH READ LOCK, pause as for an RSU, desync.
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
