//! The inputs of a node.

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::{
    Checkpoint, Delivery, Fate, Incarnation, Member, Position, SubmissionId, Uuid,
};

use crate::gtid::Gtid;
use crate::last_action::LastAction;
use crate::options::Options;
use crate::work::WorkId;
use crate::writeset::WriteSetDraft;

/// Names one waiting call; chosen by the provider, unique among the calls that still wait.
/// Each ticket is answered exactly once by [`crate::HostAction::Answer`], often within the same
/// [`crate::Replicator::handle`].
pub type Ticket = u64;

/// The server's name for a transaction: unique on its node while it lives.
pub type TrxId = u64;

/// The server's name for a connection.
pub type ConnId = u64;

/// An input of [`crate::Replicator::handle`].
#[derive(Debug)]
pub enum Event {
    // --- life
    /// connect() was called. Everything of an earlier connection is forgotten, except how far
    /// this process has applied (when `server_running`).
    Connect(Box<Connect>),
    /// This node founds this history; as if it had been connected to. Its database has none.
    Found {
        /// The cluster's uuid.
        history: Uuid,
    },
    /// disconnect() was called: every waiting client is answered at once, then
    /// [`crate::GroupAction::Leave`] follows; the provider sends [`Event::Left`] when the group has
    /// let go or its patience ended.
    Disconnect,
    /// New settings; take effect at once.
    SetOptions(Options),
    /// Time has passed (see [`crate::Replicator::next_deadline_ms`]).
    Tick,

    // --- from the group
    /// The next committed entry.
    Delivered {
        /// Its position: greater than that of the one before, not always by 1.
        position: Position,
        /// What.
        delivery: Delivery,
    },
    /// No majority. Repeated when the component changes.
    NonPrimary {
        /// Reachable members, this one included.
        component: Vec<Member>,
    },
    /// An own submission will not be answered by a delivery (or only after all, see rule 7).
    Failed {
        /// Which.
        id: SubmissionId,
        /// How sure that is.
        fate: Fate,
    },
    /// Answer to [`crate::GroupAction::Spread`]: a majority holds it, or its submission will fail.
    Spread {
        /// Its number.
        parcel: u64,
    },
    /// The entries beyond the last delivery, up to here, deliver nothing.
    Passed {
        /// Position of the last.
        position: Position,
    },
    /// Answer to [`crate::GroupAction::Read`].
    ReadPoint {
        /// The reader's token.
        token: u64,
        /// Nothing acknowledged before lies beyond.
        position: Position,
    },
    /// Answer to [`crate::GroupAction::Read`]: no majority.
    ReadFailed {
        /// The reader's token.
        token: u64,
    },
    /// The node's log is about to be given up for one that begins anew ([`Event::Reset`]).
    LogEnds,
    /// The group's log begins anew above this checkpoint: this node needs the control state of a
    /// peer.
    Reset(Box<Checkpoint>),
    /// The group has let this node go.
    Left,
    /// Bytes that a peer's replicator sent with [`crate::Action::SendTo`].
    Direct {
        /// Who.
        from: Incarnation,
        /// What.
        bytes: Bytes,
    },

    // --- from client threads
    /// certify(): answered OK, TRX_FAIL or BF_ABORT (ordered), or CONN_FAIL/NODE_FAIL (unordered,
    /// nil gtid). A fragment that does not commit is answered TRX_FAIL, not BF_ABORT, and also
    /// without a gtid if its fate is unknown; it has no place in the order then, and a rollback() follows.
    Certify {
        /// Whom to answer.
        ticket: Ticket,
        /// The transaction.
        trx: TrxId,
        /// Its connection.
        conn: ConnId,
        /// The whole write-set or fragment, encoded outside of any lock.
        draft: WriteSetDraft,
    },
    /// commit_order_enter().
    CommitOrderEnter {
        /// Whom to answer: OK, or BF_ABORT for an own transaction.
        ticket: Ticket,
        /// Which slot.
        owner: Owner,
    },
    /// commit_order_leave().
    CommitOrderLeave {
        /// Whom to answer.
        ticket: Ticket,
        /// Which slot.
        owner: Owner,
        /// Text of an apply error, if there was one (never empty).
        error: Option<Bytes>,
    },
    /// release(): completes whatever stages are still open, and forgets the transaction. OK for
    /// an unknown one. After a fragment that does not commit, the transaction goes on
    /// ([`crate::Answer::lives_on`]); BF_ABORT if it was aborted meanwhile.
    Release {
        /// Whom to answer.
        ticket: Ticket,
        /// The transaction.
        trx: TrxId,
    },
    /// abort_certification(): answered within the same call; the answer's gtid is the victim's.
    Abort {
        /// Whom to answer: OK or NOT_ALLOWED.
        ticket: Ticket,
        /// The aborter's seqno; <= 0 if it has none.
        bf_seqno: Seqno,
        /// The victim.
        victim: TrxId,
        /// True if the provider has an open write-set of that id that was not certified yet.
        /// Then the next certify() of it fails, unless a release() comes first.
        executing: bool,
    },
    /// replay_trx(): answered OK with [`crate::Answer::replay`] when all before have left commit
    /// order and the caller is to apply it, or TRX_FAIL.
    Replay {
        /// Whom to answer.
        ticket: Ticket,
        /// The transaction that got BF_ABORT.
        trx: TrxId,
    },
    /// rollback() of a streaming transaction: a rollback fragment goes to the order, behind all
    /// fragments of the transaction, and comes back as a [`crate::Task::Apply`] on every node. Answered
    /// at once: OK, or TRX_FAIL if nothing can be sent (it is to be asked for again).
    Rollback {
        /// Whom to answer.
        ticket: Ticket,
        /// The transaction.
        trx: TrxId,
    },
    /// sync_wait(). Time-outs are the caller's: it sends [`Event::CancelTicket`].
    SyncWait {
        /// Whom to answer: OK, TRX_FAIL (not primary), TRX_MISSING (other history); the gtid is
        /// the last committed one.
        ticket: Ticket,
        /// Wait for this one; without, for everything acknowledged by anybody before now.
        upto: Option<Gtid>,
    },
    /// The caller of sync_wait() (or of a call that failed otherwise) no longer waits: its ticket
    /// is not answered any more. Allowed for SyncWait, Pause, Desync and Resync.
    CancelTicket {
        /// Which.
        ticket: Ticket,
    },
    /// to_execute_start(): answered OK (commit order held), TRX_FAIL (ordered: commit order held
    /// too, to_execute_end() follows), or CONN_FAIL (nil gtid: nothing follows).
    ToiStart {
        /// Whom to answer.
        ticket: Ticket,
        /// The connection: one TOI at a time.
        conn: ConnId,
        /// Keys (all exclusive) and action; the ISOLATION flag is added here.
        draft: WriteSetDraft,
    },
    /// to_execute_end().
    ToiEnd {
        /// Whom to answer.
        ticket: Ticket,
        /// The connection.
        conn: ConnId,
        /// Text of an error, if there was one.
        error: Option<Bytes>,
    },
    /// pause(): answered OK with the gtid at which everything stands still, or CONN_FAIL.
    Pause {
        /// Whom to answer.
        ticket: Ticket,
    },
    /// resume().
    Resume {
        /// Whom to answer.
        ticket: Ticket,
    },
    /// desync(): answered once ordered; TRX_FAIL if that cannot be.
    Desync {
        /// Whom to answer.
        ticket: Ticket,
    },
    /// resync(): answered at once.
    Resync {
        /// Whom to answer.
        ticket: Ticket,
    },
    /// sst_sent(): answered at once, also within the donate callback; CONN_FAIL if not a donor.
    SstSent {
        /// Whom to answer.
        ticket: Ticket,
        /// What was sent.
        gtid: Gtid,
        /// 0, or a negative errno.
        rcode: i32,
    },
    /// sst_received(): answered at once; CONN_FAIL if nothing is awaited.
    SstReceived {
        /// Whom to answer.
        ticket: Ticket,
        /// The position that the server read back from its storage engine.
        gtid: Gtid,
        /// 0, or a negative errno.
        rcode: i32,
    },

    // --- from recv() threads
    /// The callback of a work (of any kind but SstRequest, Donate and Exit) has returned.
    WorkDone {
        /// Which.
        work: WorkId,
        /// False if the callback reported a failure.
        ok: bool,
    },
    /// The sst_request callback has returned.
    SstRequested {
        /// Which.
        work: WorkId,
        /// The server's request: empty when the running server cannot take a snapshot.
        /// `None`: the callback failed.
        request: Option<Bytes>,
    },
    /// The sst_donate callback has returned.
    Donated {
        /// Which.
        work: WorkId,
        /// False if the transfer could not be started.
        ok: bool,
    },
}

/// The owner of a slot in the commit order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// An own transaction (also while it is replayed: the server passes the local handle).
    Trx(TrxId),
    /// A work of kind Apply, by its seqno.
    Applied(Seqno),
}

impl Connect {
    /// The database goes on without others, which may have gone on without it: whatever number it goes on above, they have in
    /// common with it what it surely holds, up to `common`.
    pub fn add_override(&mut self, id: Uuid, common: Seqno) {
        self.overrides.push((id, common));
    }
}

/// The facts that a node needs to take part.
#[derive(Clone, Debug)]
pub struct Connect {
    /// Identity of this connection; submissions carry it.
    pub incarnation: Incarnation,
    /// This node as the others see it.
    pub me: Member,
    /// What the database holds: from grastate.dat and --wsrep-start-position, or, when the server
    /// runs already, whatever (this process's own last committed counts then). Nil: unknown.
    pub local: Gtid,
    /// The last [`crate::Note::Action`] of the processes before, as far as `local`'s history goes.
    pub last_action: LastAction,
    /// Set if the group was told to bootstrap: the history it founds or continues. Continues
    /// `local` if that has the same uuid.
    pub bootstrap: Option<Uuid>,
    /// True if the storage engines are up already (connect() through SET GLOBAL).
    pub server_running: bool,
    /// Control state recovered from the own log, as [`crate::Replicator::control_snapshot`] gave
    /// it; deliveries continue above its position. None: ask a peer.
    pub control: Option<Bytes>,
    /// Operator's overrides that the database's history includes, as far as the own log knows
    /// (rule 11). A database beyond a fork that it does not know needs a snapshot.
    pub overrides: Vec<(Uuid, Seqno)>,
}
