//! The inputs of a node: calls of the server's threads, deliveries and answers of the group, peer messages, and the
//! time.

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::{
    Checkpoint, Delivery, Fate, Incarnation, Member, Position, SubmissionId, Uuid,
};

use crate::forks::{Fork, is_choice};
use crate::gtid::Gtid;
use crate::last_action::LastAction;
use crate::options::Options;
use crate::work::WorkId;
use crate::writeset::WriteSetDraft;

/// Names one waiting call. The provider chooses it, unique among the calls that still wait. Each ticket is answered
/// exactly once by [`crate::HostAction::Answer`], often within the same [`crate::Replicator::handle`].
pub type Ticket = u64;

/// The server's name for a transaction: unique on its node while it lives.
pub type TrxId = u64;

/// The server's name for a connection.
pub type ConnId = u64;

/// An input of [`crate::Replicator::handle`].
#[derive(Debug)]
pub enum Event {
    // --- life
    /// connect() was called. The node forgets everything of an earlier connection, except how far this process has
    /// applied (when `server_running`).
    Connect(Box<Connect>),
    /// This node founds this history, as if connect() had said so. Its database has no history.
    Found {
        /// The cluster's uuid.
        history: Uuid,
    },
    /// disconnect() was called. Every waiting client is answered at once, then [`crate::GroupAction::Leave`] follows.
    /// The provider sends [`Event::Left`] when the group has let the node go, or when the provider has waited too long.
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
        /// The entry.
        delivery: Delivery,
        /// True if the group is primary, by this entry or a later one.
        in_primary: bool,
    },
    /// No majority. Repeated when the component changes.
    NonPrimary {
        /// Reachable members, this one included.
        component: Vec<Member>,
    },
    /// An own submission will not be answered by a delivery (or only late, see rule 7).
    Failed {
        /// The submission.
        id: SubmissionId,
        /// The certainty of the failure.
        fate: Fate,
    },
    /// The processes with which this one is connected; sent whenever this changes.
    Connected(Vec<Incarnation>),
    /// Answer to [`crate::GroupAction::Spread`]: a majority holds the bulk payload, or its submission will fail.
    Spread {
        /// Number of the bulk payload.
        bulk: u64,
    },
    /// The entries beyond the last delivery, up to this position, deliver nothing.
    Passed {
        /// Position of the last such entry.
        position: Position,
    },
    /// Answer to [`crate::GroupAction::Read`].
    ReadPoint {
        /// The reader's token.
        token: u64,
        /// No entry that was acknowledged before the request lies beyond this position.
        position: Position,
    },
    /// Answer to [`crate::GroupAction::Read`]: no majority.
    ReadFailed {
        /// The reader's token.
        token: u64,
    },
    /// The node gives its log up for one that begins anew ([`Event::Reset`]).
    LogEnds,
    /// The group's log begins anew above this checkpoint: this node needs a peer's control state.
    Reset(Box<Checkpoint>),
    /// The group has let this node go.
    Left,
    /// The entries that a peer has pulled cannot be read ([`crate::Action::Serve`]).
    Unserved {
        /// The peer.
        to: Incarnation,
        /// The first entry that it asked for.
        seqno: Seqno,
    },
    /// Bytes that a peer's replicator sent with [`crate::Action::SendTo`].
    PeerMessage {
        /// The sender.
        from: Incarnation,
        /// The bytes.
        bytes: Bytes,
        /// True if the sender is on the branch of the log here ([`trireme_group::Group::shares_branch`]).
        of_own_branch: bool,
    },

    // --- from client threads
    /// certify(): answered OK, TRX_FAIL or BF_ABORT (ordered), or CONN_FAIL/NODE_FAIL (unordered, nil gtid). A fragment
    /// that does not commit is answered TRX_FAIL, not BF_ABORT. If its fate is unknown, the answer has no gtid; the
    /// fragment then has no place in the order, and a rollback() follows.
    Certify {
        /// The caller.
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
        /// The caller: OK, or BF_ABORT for an own transaction.
        ticket: Ticket,
        /// The owner of the slot.
        owner: Owner,
    },
    /// commit_order_leave().
    CommitOrderLeave {
        /// The caller.
        ticket: Ticket,
        /// The owner of the slot.
        owner: Owner,
        /// Text of an apply error, if there was one (never empty).
        error: Option<Bytes>,
    },
    /// release(): completes the open stages, and forgets the transaction. OK for an unknown one. After a fragment that
    /// does not commit, the transaction goes on ([`crate::Answer::lives_on`]); BF_ABORT if it was aborted meanwhile.
    Release {
        /// The caller.
        ticket: Ticket,
        /// The transaction.
        trx: TrxId,
    },
    /// abort_certification(): answered within the same call; the answer's gtid is the victim's.
    Abort {
        /// The caller: OK or NOT_ALLOWED.
        ticket: Ticket,
        /// The aborter's seqno; <= 0 if it has none.
        bf_seqno: Seqno,
        /// The victim.
        victim: TrxId,
        /// True if the provider has an open write-set of that id that was not certified yet. Then its next certify()
        /// fails, unless a release() comes first.
        executing: bool,
    },
    /// replay_trx(): answered OK with [`crate::Answer::replay`] when all earlier seqnos have left commit order and the
    /// caller must apply it; or TRX_FAIL.
    Replay {
        /// The caller.
        ticket: Ticket,
        /// The transaction that got BF_ABORT.
        trx: TrxId,
    },
    /// The replay of this transaction has failed in the server: this node has diverged.
    ReplayFailed {
        /// The caller of replay_trx().
        ticket: Ticket,
        /// The transaction.
        trx: TrxId,
    },
    /// rollback() of a streaming transaction: a rollback fragment goes to the order, behind all fragments of the
    /// transaction, and comes back as a [`crate::Task::Apply`] on every node. Answered at once: OK, or TRX_FAIL if
    /// nothing can be sent (the server must call again).
    Rollback {
        /// The caller.
        ticket: Ticket,
        /// The transaction.
        trx: TrxId,
    },
    /// sync_wait(). The caller watches the time-out itself, and sends [`Event::CancelTicket`].
    SyncWait {
        /// The caller: OK, TRX_FAIL (not primary), TRX_MISSING (other history). The gtid is the last committed one.
        ticket: Ticket,
        /// The position to wait for; None: everything that any member acknowledged before now.
        upto: Option<Gtid>,
    },
    /// The caller of sync_wait() (or of a call that failed otherwise) no longer waits: its ticket is not answered.
    /// Allowed for SyncWait, Pause, Desync and Resync.
    CancelTicket {
        /// The ticket.
        ticket: Ticket,
    },
    /// to_execute_start(): answered OK (commit order held), TRX_FAIL (ordered: commit order held too, to_execute_end()
    /// follows), or CONN_FAIL (nil gtid: no call follows).
    ToiStart {
        /// The caller.
        ticket: Ticket,
        /// The connection: one TOI at a time.
        conn: ConnId,
        /// Keys (all exclusive) and action; the node adds the ISOLATION flag.
        draft: WriteSetDraft,
    },
    /// to_execute_end().
    ToiEnd {
        /// The caller.
        ticket: Ticket,
        /// The connection.
        conn: ConnId,
        /// Text of an error, if there was one.
        error: Option<Bytes>,
    },
    /// pause(): answered OK with the gtid at which everything stands still, or CONN_FAIL.
    Pause {
        /// The caller.
        ticket: Ticket,
    },
    /// resume().
    Resume {
        /// The caller.
        ticket: Ticket,
    },
    /// desync(): answered when ordered; TRX_FAIL if that is impossible.
    Desync {
        /// The caller.
        ticket: Ticket,
    },
    /// resync(): answered at once.
    Resync {
        /// The caller.
        ticket: Ticket,
    },
    /// sst_sent(): answered at once, also within the donate callback; CONN_FAIL if this node is no donor.
    SstSent {
        /// The caller.
        ticket: Ticket,
        /// The position of the sent state.
        gtid: Gtid,
        /// 0, or a negative errno.
        rcode: i32,
    },
    /// sst_received(): answered at once; CONN_FAIL if the node awaits no SST.
    SstReceived {
        /// The caller.
        ticket: Ticket,
        /// The position that the server read back from its storage engine.
        gtid: Gtid,
        /// 0, or a negative errno.
        rcode: i32,
    },

    // --- from recv() threads
    /// The callback of a work (of any kind but SstRequest, Donate and Exit) has returned.
    WorkDone {
        /// The work.
        work: WorkId,
        /// False if the callback reported a failure.
        ok: bool,
    },
    /// The sst_request callback has returned.
    SstRequested {
        /// The work.
        work: WorkId,
        /// The server's request: empty when the running server cannot take an SST. `None`: the callback failed.
        request: Option<Bytes>,
    },
    /// The sst_donate callback has returned.
    Donated {
        /// The work.
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

/// Every member holds the first view of a history; a member that lacks later entries takes an SST.
pub const FIRST_VIEW: Seqno = 1;

impl Connect {
    /// Founds the history anew above the database, by the override `id`: the database goes on without other nodes,
    /// which may have gone on without it. `in_log`: the overrides in this node's log that were made, or may have been;
    /// None: the log may lack some. `common`: the last seqno that both sides surely have in common, whatever seqno the
    /// database goes on above. Returns the overrides before this one.
    pub fn found_above(&mut self, in_log: Option<&[Uuid]>, id: Uuid, common: Seqno) -> Vec<Uuid> {
        let common = match in_log {
            Some(in_log) => self.take_up(in_log, common),
            None => common,
        };
        let past = self.past_overrides();
        self.overrides.push((id, common));
        past
    }

    /// Takes up the overrides that this node's log knows, before the override of a bootstrap: those to which the
    /// database has not come, too. Returns the last seqno that the others surely have in common with the database, at most
    /// `common`: the database may have gone another way than these overrides.
    fn take_up(&mut self, in_log: &[Uuid], common: Seqno) -> Seqno {
        // An override that was not delivered, and is not in the log, was never made.
        let is_made = |(id, fork): &Fork| *fork > 0 || is_choice(id) || in_log.contains(id);
        self.overrides.retain(is_made);
        let past = self.past_overrides();
        let beyond = in_log.strip_prefix(&past[..]).unwrap_or_default();
        let common = match beyond {
            [] => common,
            _ => common.min(FIRST_VIEW),
        };
        for id in beyond {
            self.overrides.push((*id, common));
        }
        common
    }

    /// Returns the ids of the operators' overrides in the database's past.
    pub fn past_overrides(&self) -> Vec<Uuid> {
        let ids = self.overrides.iter().map(|(id, _)| *id);
        ids.filter(|id| !is_choice(id)).collect()
    }
}

/// The facts that a node needs to take part.
#[derive(Clone, Debug)]
pub struct Connect {
    /// Identity of this connection; submissions carry it.
    pub incarnation: Incarnation,
    /// This node as a member.
    pub me: Member,
    /// The database's position: from grastate.dat and --wsrep-start-position. Ignored when the server runs already:
    /// then this process's own last committed position counts. Nil: unknown.
    pub local: Gtid,
    /// The last [`crate::Note::Action`] of earlier processes, if it is in `local`'s history.
    pub last_action: LastAction,
    /// Set if the group was told to bootstrap: the history that it founds or continues. It continues `local` if that
    /// has the same UUID.
    pub bootstrap: Option<Uuid>,
    /// True if the storage engines are up already (connect() through SET GLOBAL).
    pub server_running: bool,
    /// Control state recovered from the own log, as [`crate::Replicator::control_snapshot`] gave
    /// it; deliveries continue above its position. None: ask a peer.
    pub control: Option<Bytes>,
    /// The last [`crate::Note::Overrides`] of earlier processes. A database beyond a fork that it does not know needs an
    /// SST (rules 11, 13).
    pub overrides: Vec<Fork>,
}
