//! What members say to one another. The bytes are described in `docs/wire-group.md`.

use bytes::Bytes;

use crate::checkpoint::Checkpoint;
use crate::configuration::{Configuration, Member};
use crate::entry::{Body, Entry};
use crate::ids::{Ballot, Incarnation, ParcelId, Position, SubmissionId, TimeMs, Uuid};

/// A message between two members.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Heartbeat, and the first message on every connection.
    Status(Status),
    /// Dissemination of a submission by its origin; no payload: it and all before it that are not ordered are
    /// withdrawn.
    Submit {
        /// The origin's count.
        number: u64,
        /// Bytes, none for a withdrawn submission.
        payload: Option<Bytes>,
    },
    /// The leader's order.
    Append(Append),
    /// A member holds the log up to here, in this ballot (rule 1).
    Ack {
        /// Ballot that it acknowledges in.
        ballot: Ballot,
        /// Contiguous up to this position, payloads included.
        position: Position,
        /// What it knows to be committed.
        commit: Position,
    },
    /// "This is my log; feed me from where we agree."
    Summary {
        /// Ballot that it is meant for.
        ballot: Ballot,
        /// The log.
        summary: Summary,
    },
    /// The log begins anew above this checkpoint.
    Install {
        /// The leader's ballot.
        ballot: Ballot,
        /// State to start from.
        checkpoint: Checkpoint,
        /// Having acknowledged up to here, an amnesiac member is intact again (rule 4).
        intact_at: Position,
    },
    /// "Would you promise this ballot?"
    PreVote {
        /// The ballot that would be asked for.
        ballot: Ballot,
    },
    /// Answer to [`Message::PreVote`].
    PreVoteReply {
        /// The ballot asked about.
        ballot: Ballot,
        /// True if the answering member misses its leader too.
        granted: bool,
    },
    /// Asks for a promise.
    Prepare {
        /// The new ballot.
        ballot: Ballot,
        /// An operator's override (rule 11): its id.
        forced: Option<Uuid>,
    },
    /// The promise, with all that the new leader must know.
    Promise(Promise),
    /// "I have promised a higher ballot."
    Refuse {
        /// It.
        promised: Ballot,
    },
    /// "Take leadership": from a leader that hands it over, or from a candidate with a shorter log.
    TakeLeadership {
        /// At least this number.
        number: u64,
        /// Goes on with an override.
        forced: Option<Uuid>,
    },
    /// A process asks to be admitted.
    Join(Join),
    /// The answer to a [`Message::Join`] that cannot be granted.
    JoinRefused {
        /// What is wrong and what to do.
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
        /// By so many nodes (`pc.bootstrap_expect`).
        nodes: u32,
        /// The sender's promise, on disk: its support for the founder whose ballot it is.
        promised: Ballot,
    },
    /// "What is your log's end?" (rule 17)
    LogEnd {
        /// Comes back.
        round: u64,
    },
    /// Answer to [`Message::LogEnd`].
    LogEndReply {
        /// As asked.
        round: u64,
        /// The answering member's ballot.
        ballot: Ballot,
        /// Its log's end.
        end: Position,
    },
    /// A large payload is to be fetched from its origin, which sends this.
    Offer {
        /// The sender's parcels below this number are not wanted any more, unless submitted.
        oldest: u64,
        /// None: nothing is offered now.
        parcel: Option<Parcel>,
    },
    /// Asks for a piece of a large payload.
    Fetch {
        /// Of which.
        source: Source,
        /// From here on.
        offset: u32,
        /// So many bytes.
        len: u32,
    },
    /// A piece of a large payload.
    Part {
        /// Of which.
        source: Source,
        /// Where it begins.
        offset: u32,
        /// Empty: the sender does not have that payload.
        bytes: Bytes,
    },
    /// The sender has all of a parcel that the recipient has offered.
    Held {
        /// The parcel's number.
        parcel: u64,
    },
    /// A [`Message::Submit`] whose payload is a parcel of the sender's.
    SubmitParcel {
        /// The origin's count.
        number: u64,
        /// The payload.
        parcel: Parcel,
        /// The first bytes of the payload.
        head: Bytes,
    },
}

/// A large payload on its way from its origin to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Parcel {
    /// The origin's count of its parcels.
    pub number: u64,
    /// Bytes of the payload.
    pub len: u32,
    /// The first of them, which are told when it is submitted.
    pub head: u32,
    /// CRC-32C of the others.
    pub digest: u32,
}

impl Parcel {
    /// Its name among all members' parcels.
    pub(crate) fn id(&self, origin: Incarnation) -> ParcelId {
        ParcelId {
            origin,
            number: self.number,
        }
    }
}

/// Where a large payload is fetched from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// Its origin has offered it.
    Offered {
        /// Number of the parcel.
        parcel: u64,
    },
    /// It is in the log of whom is asked.
    Logged {
        /// Where.
        position: Position,
        /// What is expected there.
        id: SubmissionId,
    },
}

impl Message {
    /// The ballot and the position up to which its sender says that it holds the log.
    pub fn acknowledges(&self) -> Option<(Ballot, Position)> {
        match self {
            Message::Ack {
                ballot, position, ..
            } => Some((*ballot, *position)),
            Message::Append(append) => Some((append.ballot, append.ack)),
            Message::Status(status) => Some((status.ballot, status.ack)),
            _ => None,
        }
    }
}

/// Heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Default, Hash)]
pub struct Status {
    /// Ballot in force.
    pub ballot: Ballot,
    /// True if the sender holds leadership of that ballot.
    pub leader: bool,
    /// What the sender believes about itself.
    pub standing: Standing,
    /// Cluster uuid, nil if unknown.
    pub history: Uuid,
    /// Overrides in the history.
    pub overrides: Vec<Uuid>,
    /// Number of the committed configuration.
    pub configuration_number: u64,
    /// Its members.
    pub members: Vec<Incarnation>,
    /// Acknowledged position.
    pub ack: Position,
    /// Log end.
    pub end: Position,
    /// Commit point.
    pub commit: Position,
    /// For the sake of leadership's place.
    pub outlook: Outlook,
}

/// What a heartbeat says for the choice of the leader.
#[derive(Clone, Debug, PartialEq, Eq, Default, Hash)]
pub struct Outlook {
    /// What the sender's operator wants.
    pub wish: Wish,
    /// True if leadership may be given to the sender.
    pub able: bool,
    /// The sender's clock; 0: none.
    pub stamp_ms: TimeMs,
    /// The ways to the members that it is connected to.
    pub links: Vec<Link>,
}

/// `repl.sequencer`: whether a member is to be the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub enum Wish {
    /// Only if nobody else may have it.
    Never,
    /// If commits are fastest with it there.
    #[default]
    Auto,
    /// Before all members that do not say so.
    Prefer,
}

/// The way to a peer and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Link {
    /// The peer.
    pub peer: Incarnation,
    /// The stamp of its latest heartbeat; 0: none.
    pub echo_ms: TimeMs,
    /// How long the sender has had that.
    pub held_ms: u32,
    /// The round trip as the sender has measured it, or [`Link::UNKNOWN`].
    pub round_trip_us: u32,
}

impl Link {
    /// A round trip of which nothing is known.
    pub const UNKNOWN: u32 = u32::MAX;
}

/// A process's standing towards the primary component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum Standing {
    /// In no view yet, or left.
    #[default]
    Outside,
    /// In the primary component.
    Primary,
    /// Was in it, and has no majority.
    NonPrimary,
}

/// An order record: a run of entries after `prev`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Append {
    /// The leader's ballot.
    pub ballot: Ballot,
    /// Position before the first entry.
    pub prev_position: Position,
    /// Ballot of the entry there (log matching).
    pub prev_ballot: Ballot,
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
    /// Where.
    pub position: Position,
    /// Ballot of the entry (older than the leader's for entries it took over).
    pub ballot: Ballot,
    /// What.
    pub body: WireBody,
}

/// Body of a [`WireEntry`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WireBody {
    /// Whole.
    Full(Body),
    /// A submission that its origin disseminates.
    Reference {
        /// Which.
        id: SubmissionId,
        /// Length of the payload.
        len: u32,
        /// CRC-32C of the payload.
        digest: u32,
    },
}

impl WireEntry {
    /// With its payload.
    pub fn full(entry: &Entry) -> WireEntry {
        WireEntry {
            position: entry.position,
            ballot: entry.ballot,
            body: WireBody::Full(entry.body.clone()),
        }
    }

    /// A submission without its payload, of so many bytes; anything else whole.
    pub fn by_reference(entry: &Entry, len: u32, digest: u32) -> WireEntry {
        match entry.body {
            Body::Submission { id, .. } => WireEntry {
                position: entry.position,
                ballot: entry.ballot,
                body: WireBody::Reference { id, len, digest },
            },
            _ => WireEntry::full(entry),
        }
    }
}

/// What a log holds, in short.
#[derive(Clone, Debug, PartialEq, Eq, Default, Hash)]
pub struct Summary {
    /// Everything at or below is committed.
    pub commit: Position,
    /// Last position; 0 for an empty log.
    pub end: Position,
    /// Ballot of the last entry.
    pub end_ballot: Ballot,
    /// Runs of one ballot, ascending: (ballot, first, last), from the start of what is told: the newest of them, up to
    /// the log's end.
    pub runs: Vec<(Ballot, Position, Position)>,
}

impl Summary {
    /// True if the log is known to have the last entry that the checkpoint covers, and so all below it.
    pub(crate) fn holds(&self, checkpoint: &Checkpoint) -> bool {
        self.has(checkpoint.position, checkpoint.ballot)
    }

    /// True if the log is known to have this entry.
    pub(crate) fn has(&self, position: Position, ballot: Ballot) -> bool {
        let mut runs = self.runs.iter();
        runs.any(|(b, first, last)| *b == ballot && (*first..=*last).contains(&position))
    }

    /// False if the log certainly lacks this entry. What lies between the commit point and the runs that are told is not
    /// known.
    pub(crate) fn may_have(&self, position: Position, ballot: Ballot) -> bool {
        let told = self.runs.first().map_or(0, |(_, first, _)| *first);
        position <= self.commit || position < told || self.has(position, ballot)
    }

    /// The last entry: of two logs the better one has the greater (rule 1).
    pub(crate) fn last(&self) -> (Ballot, Position) {
        (self.end_ballot, self.end)
    }
}

/// What a process can prove in the replicator's numbers, which the group only compares (rule 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Proof {
    /// Up to this seqno the log is known to be committed.
    pub known: u64,
    /// Where the database stands.
    pub database: DatabaseProof,
}

/// How far a database proves that entries were committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum DatabaseProof {
    /// There is none, or a snapshot is to take its place.
    #[default]
    Nothing,
    /// It holds everything up to this seqno.
    UpTo {
        /// The seqno.
        seqno: u64,
    },
    /// It cannot be compared with the logs.
    Unclear,
}

/// Answer to a [`Message::Prepare`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Promise {
    /// The ballot promised.
    pub ballot: Ballot,
    /// The promiser's log.
    pub summary: Summary,
    /// Last committed configuration, and any later one in the log, with their positions.
    pub configurations: Vec<(Position, Configuration)>,
    /// True if acknowledged entries may be missing (rule 4).
    pub amnesiac: bool,
    /// True if acknowledged configurations may be missing, too: the log is damaged, or is not the one that was acknowledged with.
    pub lost_views: bool,
    /// What the promiser can prove in seqnos (rule 5).
    pub proof: Proof,
    /// Submissions of this process that it has reported as failed (rule 7), under its present name or earlier ones. Those
    /// under earlier names it never held.
    pub withdrawn: Vec<SubmissionId>,
}

impl Message {
    /// True if it speaks for a ballot of its sender's, or asks for one.
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

    /// True if it acts or votes for its sender's replica, not just for the process.
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
    /// Who asks; `voter`: it lost nothing that it acknowledged, and may keep the vote of its seat.
    pub member: Member,
    /// Its history, nil if it has none.
    pub history: Uuid,
    /// Number of the last view that it was in as this incarnation; 0: none.
    pub known_number: u64,
    /// The overrides that it knows.
    pub overrides: Vec<Uuid>,
}
