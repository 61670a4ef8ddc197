//! A client's session: where it stands, and what its transaction holds.

use trireme_replicator::{Gtid, TrxId};

use super::database::Writes;
use crate::seen::TimeUs;

/// Where a session stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// Between two transactions.
    #[default]
    Away,
    /// In sync_wait().
    SyncWaiting,
    /// First statement: reads.
    Reading,
    /// Wants the next row, or the table that it is in.
    Locking,
    RowWaiting,
    TableWaiting,
    /// Has locked the row and writes it.
    Changing,
    /// Commit, or not.
    Deciding,

    /// Streaming: a fragment is to be sent.
    FragmentCalling,
    FragmentCertifying,
    FragmentCertified,
    FragmentEntering,
    FragmentInside,
    FragmentQueued,
    FragmentReleasing,

    /// The server has decided to call certify(): nothing stops it any more.
    CallingCertify,
    Certifying,
    /// Passed.
    Certified,
    /// The server has decided to call commit_order_enter().
    CallingEnter,
    Entering,
    /// Has commit order.
    Inside,
    /// Has left, and waits for the group commit.
    Queued,
    /// Visible, unlocked; release() is next.
    Releasing,

    /// Aborted after it was sent: rolled back, replay_trx() is next.
    RolledBack,
    Replaying,
    /// Takes its locks again, as a brute-force thread.
    Reapplying,
    /// Has them; commit order is next.
    Reapplied,

    /// Failed certification in the order: rolled back, only its place is to be taken.
    Failed,
    FailedEntering,
    /// Waits until all before it are visible.
    FailedWaiting,

    /// DDL: to_execute_start() is next.
    ToiCalling,
    ToiStarting,
    /// Isolated; takes the table.
    ToiSeizing,
    ToiRunning,
    /// Executed; the position is to be set.
    ToiExecuted,
    /// Failed; the cluster votes on it.
    ToiVoting,
}

/// A session.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub stage: Stage,
    /// The server's name for the transaction.
    pub id: TrxId,
    /// Its place in the order.
    pub gtid: Option<Gtid>,
    /// The rows that it is to lock, in this order, and whether it writes them.
    pub script: Vec<(u32, bool)>,
    /// What it has made of the rows that it has written: their keys are appended.
    pub writes: Writes,
    /// The rows that it only reads.
    pub reads: Vec<u32>,
    /// How many of the rows it has locked.
    pub locked: usize,
    pub current: bool,
    pub autocommit: bool,
    pub retried: bool,
    pub long: bool,
    /// Its rows are sent in fragments.
    pub streams: bool,
    /// Its client was asked to roll it back in the end.
    pub rolls_back: bool,
    /// A fragment is out, or may be.
    pub streaming: bool,
    /// So many of the rows written are in fragments.
    pub sent: usize,
    /// Aborted by a view, which undoes its fragments everywhere.
    pub total_order: bool,
    /// DDL, on this table.
    pub is_ddl: bool,
    pub table: u32,
    /// DDL that no node can execute.
    pub fails: bool,
    /// Aborted by a brute-force thread or KILL.
    pub must_abort: bool,
    /// Being applied anew: it is a brute-force thread itself.
    pub replaying: bool,
    /// Its client is not there any more.
    pub gone: bool,
    /// Counts in [`super::Server`]'s `committing`.
    pub in_commit: bool,
    /// When the present wait ends without what it waited for.
    pub deadline_us: TimeUs,
}

impl Client {
    /// True while a transaction is open.
    pub fn is_busy(&self) -> bool {
        self.stage != Stage::Away
    }

    /// The provider has an open write-set of it that was not certified yet.
    pub fn is_executing(&self) -> bool {
        use Stage::{CallingCertify, FragmentCalling};
        let is_calling = matches!(self.stage, CallingCertify | FragmentCalling);
        !self.writes.rows.is_empty() && !self.streaming && (self.is_interruptible() || is_calling)
    }

    /// Between certify() and release() of a fragment.
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

    /// The rows that it writes, or was to write.
    pub fn keys(&self) -> Vec<u32> {
        let script = self.script.iter().filter(|(_, writes)| *writes);
        script.map(|(key, _)| *key).collect()
    }

    /// In the middle of a statement or between two: it rolls back as soon as it is told.
    pub fn is_interruptible(&self) -> bool {
        use Stage::{Changing, Deciding, Locking, Reading, RowWaiting, TableWaiting};
        matches!(
            self.stage,
            Reading | Locking | RowWaiting | TableWaiting | Changing | Deciding
        )
    }

    /// The states of wsrep-lib in which bf_abort() asks the provider.
    pub fn may_be_aborted(&self) -> bool {
        use Stage::{CallingCertify, CallingEnter, Certified, Certifying, Entering, Inside};
        let commits = matches!(
            self.stage,
            CallingCertify | Certifying | Certified | CallingEnter | Entering | Inside
        );
        !self.replaying && (commits || self.is_in_fragment() || self.is_interruptible())
    }

    /// For a person to read.
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
