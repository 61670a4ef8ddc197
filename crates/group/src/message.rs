//! The messages between members. `docs/wire-group.md` describes their bytes.

mod heartbeat;
mod promise;

pub use heartbeat::{ComponentState, Link, Outlook, Preference, Status};
pub use promise::{DatabaseProof, Promise, Proof, Summary};

use bytes::Bytes;

use crate::checkpoint::Checkpoint;
use crate::configuration::Member;
use crate::entry::{Body, Entry};
use crate::ids::{BulkId, Incarnation, Position, SubmissionId, Term, Uuid};

/// A message between two members.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Heartbeat, and the first message on every connection.
    Status(Status),
    /// The origin disseminates its submission. Without a payload, it withdraws this submission and all earlier ones
    /// that are not ordered.
    Submit {
        /// The submission's number.
        number: u64,
        /// The payload; None for a withdrawn submission.
        payload: Option<Bytes>,
    },
    /// The leader orders entries.
    Append(Append),
    /// A member acknowledges: in this term, it holds the log up to this position (rule 1).
    Ack {
        /// The term.
        term: Term,
        /// The position: the log is contiguous up to it, payloads included.
        position: Position,
        /// The member's commit point.
        commit: Position,
    },
    /// "This is my log; send me the entries after the last one that we share."
    Summary {
        /// The term of the leader that is asked.
        term: Term,
        /// The log.
        summary: Summary,
    },
    /// The recipient's log begins anew above this log checkpoint.
    Install {
        /// The leader's term.
        term: Term,
        /// The group's half of the log checkpoint.
        checkpoint: Checkpoint,
        /// An amnesiac member is intact again when it has acknowledged up to this position (rule 4).
        intact_at: Position,
    },
    /// "Would you promise this term?"
    PreVote {
        /// The term that the sender would ask for.
        term: Term,
    },
    /// Answer to [`Message::PreVote`].
    PreVoteReply {
        /// The term in question.
        term: Term,
        /// True if the answering member misses its leader too.
        granted: bool,
    },
    /// Asks for a promise.
    Prepare {
        /// The new term.
        term: Term,
        /// The id of a forced view, if the candidate forms one (rule 11).
        forced: Option<Uuid>,
    },
    /// The promise, with all facts that the new leader needs.
    Promise(Promise),
    /// "I have promised a higher term."
    Refuse {
        /// The promised term.
        promised: Term,
    },
    /// "Take leadership": from a leader that transfers it, or from a candidate with a worse log.
    TakeLeadership {
        /// The least number of the new term.
        number: u64,
        /// The id of the forced view that the recipient must form, if any.
        forced: Option<Uuid>,
    },
    /// A process requests admission.
    Join(Join),
    /// The leader refuses a [`Message::Join`].
    JoinRefused {
        /// The reason and the remedy.
        reason: String,
    },
    /// A member asks for a view without it.
    Leave,
    /// A member's new `pc.weight`.
    Weight {
        /// The weight.
        weight: u8,
    },
    /// "I have no history, and wait for a cluster to be founded."
    Expects {
        /// The number of founding nodes that the sender expects (`pc.bootstrap_expect`).
        nodes: u32,
        /// The sender's promised term, which is on disk: its support for that term's replica as founder.
        promised: Term,
    },
    /// "Tell me the end of your log" (rule 17).
    LogEnd {
        /// The round's number; the reply returns it.
        round: u64,
    },
    /// Answer to [`Message::LogEnd`].
    LogEndReply {
        /// The number from the question.
        round: u64,
        /// The answering member's promised term.
        term: Term,
        /// The end of its log.
        end: Position,
    },
    /// The origin offers a bulk payload, which the recipients fetch.
    Offer {
        /// Bulk payloads of the sender below this number may be dropped, unless submitted.
        oldest: u64,
        /// The offered payload; None: the sender offers none now.
        bulk: Option<BulkPayload>,
    },
    /// Requests a part of a bulk payload.
    Fetch {
        /// The payload's source.
        source: Source,
        /// Offset of the part's first byte.
        offset: u32,
        /// Number of bytes.
        len: u32,
    },
    /// A part of a bulk payload.
    Part {
        /// The payload's source.
        source: Source,
        /// Offset of the part's first byte.
        offset: u32,
        /// The part; empty if the sender does not have the payload.
        bytes: Bytes,
    },
    /// The sender holds a bulk payload completely that the recipient has offered.
    Held {
        /// The bulk payload's number.
        bulk: u64,
    },
    /// A [`Message::Submit`] whose payload is a bulk payload of the sender.
    SubmitBulk {
        /// The submission's number.
        number: u64,
        /// The payload.
        bulk: BulkPayload,
        /// The final first bytes of the payload.
        head: Bytes,
    },
}

/// A bulk payload on its way from its origin to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct BulkPayload {
    /// Its number: the origin counts its bulk payloads.
    pub number: u64,
    /// Length of the payload in bytes.
    pub len: u32,
    /// Length of the head in bytes: the submission brings the final head.
    pub head: u32,
    /// CRC-32C of the bytes after the head.
    pub digest: u32,
}

impl BulkPayload {
    /// Its id among the bulk payloads of all members.
    pub(crate) fn id(&self, origin: Incarnation) -> BulkId {
        BulkId {
            origin,
            number: self.number,
        }
    }
}

/// The source from which a member fetches a bulk payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The origin, which has offered the payload.
    Offered {
        /// Number of the bulk payload.
        bulk: u64,
    },
    /// The log of the process that is asked.
    Logged {
        /// The entry's position.
        position: Position,
        /// The submission expected there.
        id: SubmissionId,
    },
}

impl Message {
    /// True for a submission, unless it is a withdrawal. It rests on the commits of its sender's branch (rule 11): a leader
    /// of another one, older or newer, must not order it (simulator, seed 3600067514).
    pub(crate) fn brings_payload(&self) -> bool {
        match self {
            Message::Submit { payload, .. } => payload.is_some(),
            Message::SubmitBulk { .. } => true,
            _ => false,
        }
    }

    /// The term and the position that the sender acknowledges in this message, if any.
    pub fn acknowledges(&self) -> Option<(Term, Position)> {
        match self {
            Message::Ack { term, position, .. } => Some((*term, *position)),
            Message::Append(append) => Some((append.term, append.ack)),
            Message::Status(status) => Some((status.term, status.ack)),
            _ => None,
        }
    }
}

/// An order record: a run of entries after `prev`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Append {
    /// The leader's term.
    pub term: Term,
    /// Position before the first entry.
    pub prev_position: Position,
    /// Term of the entry there (log matching).
    pub prev_term: Term,
    /// Entries, contiguous.
    pub entries: Vec<WireEntry>,
    /// The leader's own acknowledgement.
    pub ack: Position,
    /// The leader's commit point.
    pub commit: Position,
}

/// An entry on the wire; a submission's payload may have been sent by its origin.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WireEntry {
    /// The entry's position.
    pub position: Position,
    /// The entry's term (older than the leader's, if the leader took the entry over).
    pub term: Term,
    /// The entry's body.
    pub body: WireBody,
}

/// Body of a [`WireEntry`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WireBody {
    /// The whole body.
    Full(Body),
    /// A submission whose payload its origin disseminates.
    Reference {
        /// The submission.
        id: SubmissionId,
        /// Length of the payload.
        len: u32,
        /// CRC-32C of the payload.
        digest: u32,
    },
}

impl WireEntry {
    /// The entry with its payload.
    pub fn full(entry: &Entry) -> WireEntry {
        WireEntry {
            position: entry.position,
            term: entry.term,
            body: WireBody::Full(entry.body.clone()),
        }
    }

    /// The entry without its payload if it is a submission; otherwise the whole entry. `len`: bytes of the payload.
    pub fn by_reference(entry: &Entry, len: u32, digest: u32) -> WireEntry {
        match entry.body {
            Body::Submission { id, .. } => WireEntry {
                position: entry.position,
                term: entry.term,
                body: WireBody::Reference { id, len, digest },
            },
            _ => WireEntry::full(entry),
        }
    }
}

impl Message {
    /// True if the sender claims leadership of a term with this message, or asks for it.
    pub(crate) fn claims_leadership(&self) -> bool {
        matches!(
            self,
            Message::Append(_)
                | Message::Install { .. }
                | Message::PreVote { .. }
                | Message::Prepare { .. }
                | Message::TakeLeadership { .. }
        )
    }

    /// True if the sender acts or votes for its replica with this message, not just for its process.
    pub(crate) fn speaks_for_replica(&self) -> bool {
        let votes = matches!(
            self,
            Message::PreVoteReply { .. }
                | Message::Promise(_)
                | Message::Refuse { .. }
                | Message::Summary { .. }
                | Message::Expects { .. }
                | Message::LogEndReply { .. }
        );
        votes || self.claims_leadership()
    }
}

/// Request for admission.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Join {
    /// The joiner; `voter`: its replica lost nothing that it acknowledged, and may keep its vote.
    pub member: Member,
    /// Its cluster UUID, nil if it has none.
    pub history: Uuid,
    /// Number of the last view with this incarnation; 0: none.
    pub known_number: u64,
    /// Its forced-view history.
    pub overrides: Vec<Uuid>,
}
