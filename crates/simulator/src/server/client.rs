//! The session of a client: its stage, and its transaction.

use trireme_replicator::{Gtid, TrxId};

use super::database::Writes;
use super::writeset::Ddl;
use crate::seen::TimeUs;

/// The stage of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// Between two transactions.
    #[default]
    Away,
    /// In sync_wait().
    SyncWaiting,
    /// First statement: reads.
    Reading,
    /// Waits for the next row, or for the row's table.
    Locking,
    RowWaiting,
    TableWaiting,
    /// Has locked the row and writes it.
    Changing,
    /// Decides on commit or rollback.
    Deciding,

    /// Streaming: the next fragment must be sent.
    FragmentCalling,
    FragmentCertifying,
    FragmentCertified,
    FragmentEntering,
    FragmentInside,
    FragmentQueued,
    FragmentReleasing,

    /// The server has decided to call certify(): nothing stops the call.
    CallingCertify,
    Certifying,
    /// Passed certification.
    Certified,
    /// The server has decided to call commit_order_enter().
    CallingEnter,
    Entering,
    /// Has commit order.
    Inside,
    /// Has left commit order and waits for the group commit.
    Queued,
    /// Visible and unlocked; release() is next.
    Releasing,

    /// Aborted after it was sent, and rolled back; replay_trx() is next.
    RolledBack,
    Replaying,
    /// Locks its rows again, as a brute-force thread.
    Reapplying,
    /// Has its locks; commit order is next.
    Reapplied,

    /// Failed certification in the order, and rolled back; it must only take its place.
    Failed,
    FailedEntering,
    /// Waits until all earlier seqnos are visible.
    FailedWaiting,

    /// DDL: to_execute_start() is next.
    ToiCalling,
    ToiStarting,
    /// Isolated; locks the table.
    ToiSeizing,
    ToiRunning,
    /// Executed; the position must be set.
    ToiExecuted,
    /// Failed; the members hold an error vote.
    ToiVoting,
}

/// A session.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub stage: Stage,
    /// The server's id of the transaction.
    pub id: TrxId,
    /// Its place in the order.
    pub gtid: Option<Gtid>,
    /// The rows that it will lock, in this order; true for those that it writes.
    pub script: Vec<(u32, bool)>,
    /// The new images of the rows that it has written; the provider has their keys.
    pub writes: Writes,
    /// The rows that it only reads.
    pub reads: Vec<u32>,
    /// Number of rows that it has locked.
    pub locked: usize,
    pub current: bool,
    pub autocommit: bool,
    pub retried: bool,
    pub long: bool,
    /// True if it sends its rows in fragments.
    pub streams: bool,
    /// True if it rolls back in the end, as its errand says.
    pub rolls_back: bool,
    /// True if it has sent, or may have sent, a fragment.
    pub streaming: bool,
    /// Number of written rows that are in fragments.
    pub sent: usize,
    /// True if a view aborted it: the view undoes its fragments on all nodes.
    pub total_order: bool,
    /// True for DDL on `table`.
    pub is_ddl: bool,
    pub table: u32,
    /// The effect of its DDL.
    pub ddl: Ddl,
    /// True if a brute-force thread or KILL has aborted it.
    pub must_abort: bool,
    /// True while it is replayed: it is then a brute-force thread itself.
    pub replaying: bool,
    /// True if its client has gone.
    pub gone: bool,
    /// True if it counts in [`super::Server`]'s `committing`.
    pub in_commit: bool,
    /// Time at which the present wait ends without success.
    pub deadline_us: TimeUs,
}

impl Client {
    /// True while a transaction is open.
    pub fn is_busy(&self) -> bool {
        self.stage != Stage::Away
    }

    /// True if the provider has an open write-set of the client that is not certified yet.
    pub fn is_executing(&self) -> bool {
        use Stage::{CallingCertify, FragmentCalling};
        let is_calling = matches!(self.stage, CallingCertify | FragmentCalling);
        !self.writes.rows.is_empty() && !self.streaming && (self.is_interruptible() || is_calling)
    }

    /// True between certify() and release() of a fragment.
    pub fn is_in_fragment(&self) -> bool {
        use Stage::{
            FragmentCalling, FragmentCertified, FragmentCertifying, FragmentEntering,
            FragmentInside, FragmentQueued, FragmentReleasing,
        };
        matches!(
            self.stage,
            FragmentCalling
                | FragmentCertifying
                | FragmentCertified
                | FragmentEntering
                | FragmentInside
                | FragmentQueued
                | FragmentReleasing
        )
    }

    /// The rows that it writes or will write.
    pub fn keys(&self) -> Vec<u32> {
        let script = self.script.iter().filter(|(_, writes)| *writes);
        script.map(|(key, _)| *key).collect()
    }

    /// True in the middle of a statement or between two: an abort makes it roll back at once.
    pub fn is_interruptible(&self) -> bool {
        use Stage::{Changing, Deciding, Locking, Reading, RowWaiting, TableWaiting};
        matches!(
            self.stage,
            Reading | Locking | RowWaiting | TableWaiting | Changing | Deciding
        )
    }

    /// True in the states of wsrep-lib in which bf_abort() asks the provider.
    pub fn may_be_aborted(&self) -> bool {
        use Stage::{CallingCertify, CallingEnter, Certified, Certifying, Entering, Inside};
        let commits = matches!(
            self.stage,
            CallingCertify | Certifying | Certified | CallingEnter | Entering | Inside
        );
        !self.replaying && (commits || self.is_in_fragment() || self.is_interruptible())
    }

    /// A description for a reader.
    pub fn describe(&self) -> String {
        let mut text = format!("{:?}", self.stage);
        if self.is_busy() {
            text += &format!(" {:x} (trx {})", self.writes.writer, self.id);
        }
        if let Some(gtid) = self.gtid {
            text += &format!(" seqno {}", gtid.seqno);
        }
        if self.must_abort {
            text += ", must abort";
        }
        if self.replaying {
            text += ", replays";
        }
        text
    }
}
