//! The inputs (events) and outputs (actions) of the group core.

use bytes::Bytes;

use crate::checkpoint::Checkpoint;
use crate::configuration::{Configuration, Member};
use crate::entry::Entry;
use crate::ids::{BulkId, Incarnation, Position, ReplicaId, SubmissionId, Term, Uuid};
use crate::lasting::Lasting;
use crate::message::Message;

/// The knowledge of a starting process about its own past.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Recovered {
    /// The promised term, which is flushed in every durability mode (rule 4).
    pub promised: Term,
    /// True for an amnesiac replica: entries that it once acknowledged may be missing (rule 4).
    pub amnesiac: bool,
    /// True for lost views: configurations that it acknowledged may be missing, too. Without a log they may be.
    pub lost_views: bool,
    /// Its log; None: it has no usable log.
    pub log: Option<RecoveredLog>,
    /// The facts that the last connection of this process hands over.
    pub lasting: Lasting,
}

/// A log that was read back after a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecoveredLog {
    /// The group's state at some position below the log's end.
    pub checkpoint: Checkpoint,
    /// All entries above it, in order.
    pub entries: Vec<Entry>,
    /// Up to this position the payloads of submissions were left in the log ([`Entry::drop_payload`]), and are read
    /// when their turn comes. 0: no payload was left there.
    pub left: Position,
    /// Everything up to this position was committed. Later entries may never have been committed (rule 6).
    pub commit: Position,
}

/// An input of [`crate::Group::handle`].
#[derive(Clone, Debug, Hash)]
pub enum Event {
    /// Start a component of this member alone, continuing or founding history `history`.
    Bootstrap {
        /// Cluster uuid.
        history: Uuid,
        /// The forced-view history, oldest first.
        overrides: Vec<Uuid>,
        /// The id of a forced view, if the history has a past: then others may have gone on without this node (rule
        /// 11).
        override_id: Option<Uuid>,
    },
    /// A connection to a peer is up (after the handshake).
    PeerUp {
        /// Its replica id.
        replica: ReplicaId,
        /// Its incarnation.
        incarnation: Incarnation,
    },
    /// The connection is gone, which proves nothing about the process (rule 10).
    PeerDown {
        /// Incarnation of the peer.
        incarnation: Incarnation,
    },
    /// The peer's listener refuses connections: its process is dead (rule 10).
    PeerDead {
        /// Incarnation of the peer.
        incarnation: Incarnation,
    },
    /// The send queue to this peer overflowed and has drained: the peer needs a catch-up from the log.
    PeerDrained {
        /// Incarnation of the peer.
        incarnation: Incarnation,
    },
    /// A message came in.
    Message {
        /// Its sender.
        from: Incarnation,
        /// The message.
        message: Message,
    },
    /// Log entries up to this position are as durable as the durability mode promises. The driver hands this event in
    /// before the other events of a batch. It drops the event if a `Truncate` or `Reset` has dropped those entries
    /// meanwhile: otherwise the event would count for their successors.
    Appended {
        /// Last such position.
        position: Position,
    },
    /// The progress of [`Action::Stage`]: the core requests the next parts only as fast as the log writes.
    StagedUpTo {
        /// The bulk payload.
        bulk: BulkId,
        /// Number of its bytes that are written; u32::MAX: the log will not stage it.
        until: u32,
    },
    /// A promise is on disk.
    Persisted {
        /// The promised term.
        promised: Term,
    },
    /// Time has passed.
    Tick,
    /// Leave the group gracefully.
    Leave,
    /// `pc.bootstrap`: make this component primary without a majority (rule 11).
    ForcePrimary {
        /// The id of the forced view.
        override_id: Uuid,
    },
    /// `pc.weight` was set.
    SetWeight {
        /// New weight.
        weight: u8,
    },
    /// The control state says that these members have JOINED: they may get their votes (rule 3).
    Joined {
        /// The position of that control state; one older than the configuration in force is ignored.
        position: Position,
        /// All members that are joined, synced or donors.
        members: Vec<Incarnation>,
    },
    /// The processes that answer at the addresses of `wsrep_cluster_address`; sent whenever this changes. Only a node
    /// without a history, which may found a cluster with others, needs it.
    Listed {
        /// The connected processes at these addresses, with this one if it is at one of them.
        members: Vec<Incarnation>,
        /// The addresses where nobody has answered, or where the process that answers is not connected.
        missing: Vec<String>,
    },
    /// A reader asks for a read point: a position beyond which no acknowledged commit lies (rule 17).
    Read {
        /// The reader's token; [`Action::ReadPoint`] or [`Action::ReadFailed`] returns it.
        token: u64,
    },
}

/// The fate of a failed submission: one that will not be delivered, as far as its origin can know (rule 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Not ordered, and never will be while some process remembers the withdrawal: a definite failure.
    Withdrawn,
    /// A leader may have ordered it. If it commits after all, it is delivered as an entry.
    Unknown,
}

/// An output of [`crate::Group::handle`]. The driver carries actions out in order. No message may leave the process
/// before the `Append`, `Truncate` and `Reset` actions ahead of it are written.
#[derive(Clone, Debug, Hash)]
pub enum Action {
    /// Send to each of these peers.
    Send {
        /// Recipients.
        to: Vec<Incarnation>,
        /// The message.
        message: Message,
    },
    /// The next bytes of a bulk payload have come in (of an own one: a member fetches them for the first time). The log
    /// may write them ahead of the entry. Offset 0 begins the payload, also if it had begun before. Answer with
    /// [`Event::StagedUpTo`].
    Stage {
        /// The bulk payload.
        bulk: BulkId,
        /// Offset of these bytes in the payload.
        offset: u32,
        /// These bytes.
        bytes: Bytes,
    },
    /// A bulk payload is no longer wanted: drop its staged bytes.
    Unstage {
        /// The bulk payload.
        bulk: BulkId,
    },
    /// A bulk payload is submitted: the staged bytes are the payload of this submission, except its first bytes.
    Staged {
        /// The bulk payload.
        bulk: BulkId,
        /// The submission.
        id: SubmissionId,
        /// Number of bytes at its begin that may differ from the staged ones.
        head: u32,
        /// CRC-32C of the whole payload.
        digest: u32,
    },
    /// Only submissions of these origins will be appended from now on: drop staged bytes of all others.
    KeepStaged {
        /// The members of the configurations in force.
        origins: Vec<Incarnation>,
    },
    /// Append to the log; answer with [`Event::Appended`] unless `append_is_durable`.
    Append {
        /// The entry.
        entry: Entry,
    },
    /// Drop every entry above this position.
    Truncate {
        /// Last position kept.
        after: Position,
    },
    /// Drop the log; it begins anew above this checkpoint. The replicator needs a state transfer.
    Reset {
        /// State of the group at the new base.
        checkpoint: Checkpoint,
    },
    /// Persist this promise, then answer with [`Event::Persisted`]. Messages that rely on it wait for that (rule 4).
    Persist {
        /// The promised term: no lower term is ever accepted again.
        promised: Term,
    },
    /// Deliver the next committed entry. The core has already left out submissions of non-members (rule 9).
    Deliver {
        /// Its position.
        position: Position,
        /// Its content.
        delivery: Delivery,
    },
    /// Deliver the next committed entries, one after the other. All are submissions of members, whose payloads were
    /// left in the log ([`RecoveredLog::left`]).
    DeliverFromLog {
        /// Position of the first.
        first: Position,
        /// Position of the last.
        last: Position,
    },
    /// The committed entries from the last delivery up to this position deliver nothing: term starts, voided
    /// submissions.
    Passed {
        /// Position of the last.
        position: Position,
    },
    /// The majority is lost: report the component as this node sees it (rule 20).
    NonPrimary {
        /// Reachable non-primary members, this one included, sorted by incarnation.
        component: Vec<Member>,
    },
    /// No delivery will answer this own submission.
    Failed {
        /// The submission.
        id: SubmissionId,
        /// Whether that is certain.
        fate: Fate,
    },
    /// A majority and the leader hold this own bulk payload, or the majority is lost: it may be submitted
    /// ([`crate::Group::submit_bulk`]).
    Spread {
        /// Its number.
        bulk: u64,
    },
    /// The read point: every commit acknowledged before the reader asked lies at or below this position.
    ReadPoint {
        /// The reader's token.
        token: u64,
        /// Wait until this position is applied.
        position: Position,
    },
    /// No majority answers this reader.
    ReadFailed {
        /// The reader's token.
        token: u64,
    },
    /// The leave is complete: a view without this member is committed, or no voter is connected.
    Left,
    /// This node founds a history, with the support of all expected nodes. Answer with [`Event::Bootstrap`]. No message
    /// may leave before the new log has been begun and flushed.
    Found,
    /// All members are here, or `pc.wait_evidence` has passed: this node goes on with the best evidence (rule 4).
    Reform {
        /// The id of the forced view: for a process that comes later, it is one.
        override_id: Uuid,
        /// True if the best evidence is this node's database: the driver founds the history anew above it, by
        /// [`crate::Group::begin_anew`] and [`Event::Bootstrap`]. Otherwise it is this node's log, and the core leads
        /// already.
        from_database: bool,
        /// The forced views before this one, in this node's log: without those that were never made.
        past: Vec<Uuid>,
        /// The processes whose promises are the evidence.
        heard: Vec<Incarnation>,
        /// For the log: the evidence, and the missing voters.
        text: String,
    },
    /// The cluster refuses this node (foreign history, fork, duplicate replica); the text names the remedy.
    Refused {
        /// For the log.
        reason: String,
    },
    /// Information for the operator.
    Note {
        /// For the log.
        text: String,
    },
    /// An error that only an operator can end; the text names the remedy.
    Alarm {
        /// For the log.
        text: String,
    },
}

/// A committed entry, as the replicator gets it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// A submission of a member in the view in force.
    Submission {
        /// Its id.
        id: SubmissionId,
        /// Its payload.
        payload: Bytes,
    },
    /// Configuration in force from here on. A new number is a view.
    Configuration(Configuration),
}
