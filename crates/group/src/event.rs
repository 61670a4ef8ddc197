//! What goes into the group core, and what comes out.

use bytes::Bytes;

use crate::checkpoint::Checkpoint;
use crate::configuration::{Configuration, Member};
use crate::entry::Entry;
use crate::ids::{Ballot, Incarnation, ParcelId, Position, ReplicaId, SubmissionId, Uuid};
use crate::lasting::Lasting;
use crate::message::Message;

/// What a process knows of its own past when it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Recovered {
    /// Promised ballot, flushed in every durability mode (rule 4).
    pub promised: Ballot,
    /// True if entries that this replica once acknowledged may be missing here (rule 4).
    pub amnesiac: bool,
    /// True if configurations that it acknowledged may be missing, too; so they may be without a log.
    pub lost_views: bool,
    /// What its log holds; None: nothing that can be used.
    pub log: Option<RecoveredLog>,
    /// Handed over by the last connection of this process.
    pub lasting: Lasting,
}

/// A log read back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecoveredLog {
    /// The group's state somewhere below the log's end.
    pub checkpoint: Checkpoint,
    /// All entries above it, in order.
    pub entries: Vec<Entry>,
    /// Of submissions up to here the payloads were left in the log ([`Entry::drop_payload`]): they are read when their turn
    /// comes. 0: of none.
    pub left: Position,
    /// Everything up to here was committed; what lies beyond may never have been (rule 6).
    pub commit: Position,
}

/// Persisted before anything that relies on it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HardState {
    /// No ballot below this one is ever accepted again.
    pub promised: Ballot,
    /// Last committed configuration, for recovery.
    pub configuration: Configuration,
}

/// An input of [`crate::Group::handle`].
#[derive(Clone, Debug, Hash)]
pub enum Event {
    /// Start a component of this member alone, continuing or founding history `history`.
    Bootstrap {
        /// Cluster uuid.
        history: Uuid,
        /// Overrides in the history's past, oldest first.
        overrides: Vec<Uuid>,
        /// Names this one as an override, if the history has a past: others may have gone on without
        /// this node (rule 11).
        override_id: Option<Uuid>,
    },
    /// A connection to a peer is up (after the handshake).
    PeerUp {
        /// Its replica id.
        replica: ReplicaId,
        /// Its incarnation.
        incarnation: Incarnation,
    },
    /// The connection is gone; proves nothing about the process (rule 10).
    PeerDown {
        /// Whose.
        incarnation: Incarnation,
    },
    /// The peer's listener refuses connections: its process is dead (rule 10).
    PeerDead {
        /// Whose.
        incarnation: Incarnation,
    },
    /// A queue to this peer overflowed and has drained: it must be fed from the log.
    PeerDrained {
        /// Whose.
        incarnation: Incarnation,
    },
    /// A message came in.
    Message {
        /// From whom.
        from: Incarnation,
        /// What.
        message: Message,
    },
    /// Log entries up to here are as durable as the durability mode promises. The driver hands it in
    /// ahead of the other events of a batch, and not at all for entries that a `Truncate` or `Reset`
    /// carried out meanwhile has dropped: it would count for their successors.
    Appended {
        /// Up to this position.
        position: Position,
    },
    /// What became of [`Action::Stage`]: the next pieces are asked for as fast as these are written.
    StagedUpTo {
        /// Of which payload.
        parcel: ParcelId,
        /// So many of its bytes have been written; u32::MAX: it will not be staged.
        until: u32,
    },
    /// A [`HardState`] is on disk.
    Persisted {
        /// Its ballot.
        promised: Ballot,
    },
    /// Time has passed.
    Tick,
    /// Leave the group gracefully.
    Leave,
    /// `pc.bootstrap`: make this component primary without a majority (rule 11).
    ForcePrimary {
        /// Names the override in the history.
        override_id: Uuid,
    },
    /// `pc.weight` was set.
    SetWeight {
        /// New weight.
        weight: u8,
    },
    /// The replicated state says that these members have JOINED: they may get their votes (rule 3).
    Joined {
        /// As of this position: what is older than the configuration in force is ignored.
        position: Position,
        /// All members that are joined, synced or donors.
        members: Vec<Incarnation>,
    },
    /// Who answers at the addresses of the configuration's list. Of use to a node without a history that
    /// may found a cluster with others; whenever it changes.
    Listed {
        /// Connected processes, this one included if it is at one of them.
        members: Vec<Incarnation>,
        /// The addresses where nobody has answered, or somebody who is not connected.
        missing: Vec<String>,
    },
    /// A reader asks for a position that no acknowledged commit lies beyond (rule 17).
    Read {
        /// Comes back in [`Action::ReadPoint`] or [`Action::ReadFailed`].
        token: u64,
    },
}

/// Why a submission will not be delivered as far as its origin can know (rule 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Not ordered, and will not be while anybody remembers the withdrawal: a definite failure.
    Withdrawn,
    /// May have been ordered by somebody: if it commits after all it is delivered as an entry.
    Unknown,
}

/// An output of [`crate::Group::handle`], to be carried out in order. No message may leave the
/// process before the `Append`, `Truncate` and `Reset` actions ahead of it were written.
#[derive(Clone, Debug, Hash)]
pub enum Action {
    /// Send to each of these peers.
    Send {
        /// Recipients.
        to: Vec<Incarnation>,
        /// What.
        message: Message,
    },
    /// The next bytes of a parcel have come (of an own one: are known to all): the log may write them
    /// ahead of its entry. A parcel begins at offset 0, anew if it had begun before. Answered with
    /// [`Event::StagedUpTo`].
    Stage {
        /// Which.
        parcel: ParcelId,
        /// Where they begin.
        offset: u32,
        /// They.
        bytes: Bytes,
    },
    /// A parcel is not wanted any more.
    Unstage {
        /// Which.
        parcel: ParcelId,
    },
    /// A parcel is submitted: it is the payload of this submission, but for its first bytes.
    Staged {
        /// Which.
        parcel: ParcelId,
        /// The submission.
        id: SubmissionId,
        /// So many bytes at its begin differ from what was staged.
        head: u32,
        /// CRC-32C of the whole payload.
        digest: u32,
    },
    /// Nothing of other origins will be appended any more.
    KeepStaged {
        /// The members.
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
    /// Forget the log; it begins anew above this checkpoint. The replicator needs a state transfer.
    Reset {
        /// State of the group at the new base.
        checkpoint: Checkpoint,
    },
    /// Persist, then answer with [`Event::Persisted`].
    Persist(HardState),
    /// The next committed entry. Submissions of non-members were left out already (rule 9).
    Deliver {
        /// Its position.
        position: Position,
        /// What.
        delivery: Delivery,
    },
    /// The next committed entries, one after the other, all of them submissions of members: their payloads were left in
    /// the log ([`RecoveredLog::left`]).
    DeliverFromLog {
        /// Position of the first.
        first: Position,
        /// Position of the last.
        last: Position,
    },
    /// What is committed beyond the last delivery, up to here, delivers nothing: the start of a ballot, voids.
    Passed {
        /// Position of the last.
        position: Position,
    },
    /// No majority: the component as this node sees it (rule 20).
    NonPrimary {
        /// Reachable non-primary members, this one included, sorted by incarnation.
        component: Vec<Member>,
    },
    /// An own submission will not be answered by a delivery.
    Failed {
        /// Which.
        id: SubmissionId,
        /// How sure that is.
        fate: Fate,
    },
    /// A majority and the leader hold this parcel, or the majority is lost: it may be submitted
    /// ([`crate::Group::submit_parcel`]).
    Spread {
        /// Its number.
        parcel: u64,
    },
    /// Everything acknowledged before the read was asked for lies at or below this position.
    ReadPoint {
        /// The reader's token.
        token: u64,
        /// Wait until this position is applied.
        position: Position,
    },
    /// No majority answers.
    ReadFailed {
        /// The reader's token.
        token: u64,
    },
    /// The leave is complete: a view without this member is committed, or nobody is left to ask.
    Left,
    /// This node is to found a history, with the support of all that are expected: answer with
    /// [`Event::Bootstrap`], and let nothing leave before the log of it has been begun and flushed.
    Found,
    /// This node goes on with the best that is left, all voters being here (rule 4).
    Reform {
        /// Names it as an override, which it is for whoever comes later.
        override_id: Uuid,
        /// The best is this node's database: it is to found the history anew above that, by
        /// [`crate::Group::begin_anew`] and [`Event::Bootstrap`]. Else it is its log, and it has been done.
        from_database: bool,
        /// Whose promises it rests on.
        heard: Vec<Incarnation>,
        /// What it is done with and without, for the log.
        text: String,
    },
    /// This node may not join (foreign history, fork, duplicate replica id); the text says what to do.
    Refused {
        /// For the log.
        reason: String,
    },
    /// Something an operator may want to know.
    Note {
        /// For the log.
        text: String,
    },
    /// An error that only an operator can end; the text says how.
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
        /// Its name.
        id: SubmissionId,
        /// Its bytes.
        payload: Bytes,
    },
    /// Configuration in force from here on. A new number is a view.
    Configuration(Configuration),
}
