//! The effect of an ordered entry on a node.

use bytes::Bytes;
use trireme_certification::{Outcome, Seqno};
use trireme_group::{Incarnation, SubmissionId};

use crate::gtid::Gtid;
use crate::message::Message;
use crate::votes::Ballot;
use crate::writeset::WriteSet;

/// The effect of an entry on this node.
#[derive(Debug)]
pub(crate) enum Effect {
    /// A write-set took a seqno.
    WriteSet {
        id: SubmissionId,
        write_set: WriteSet,
        seqno: Seqno,
        outcome: Outcome,
    },
    /// A submission without effect: its origin may not write, or it cannot be decoded.
    Voided { id: SubmissionId, reason: String },
    /// A view took a seqno.
    View { seqno: Seqno, lost: Vec<Lost> },
    /// The weights changed.
    Weights,
    /// A joiner requested an SST; None: no member can send it now.
    StateRequest {
        id: SubmissionId,
        donor: Option<Incarnation>,
        request: Bytes,
        preference: String,
        /// The request is not for an SST, but for a script that passes this position on.
        bypass: Option<Gtid>,
    },
    /// A donor has finished.
    Donated {
        id: SubmissionId,
        joiner: Option<Incarnation>,
        rcode: i32,
    },
    /// A member's state or desync count changed, or (`refused`) was not allowed to.
    Member {
        id: SubmissionId,
        message: Message,
        refused: bool,
    },
    /// The group has set a member to desynced, because writers wait for it; None: that is not allowed now.
    LeftOut {
        id: SubmissionId,
        member: Option<Incarnation>,
    },
    /// A member that was left out has caught up.
    CaughtUp { id: SubmissionId, refused: bool },
    /// A joiner has reported that its database is in doubt.
    InDoubt { id: SubmissionId },
    /// A member has reported its applied watermark.
    Applied { id: SubmissionId },
    /// A member voted on the outcome of a seqno.
    Vote {
        id: SubmissionId,
        seqno: Seqno,
        ballot: Ballot,
        text: String,
    },
}

/// A donor that left during its donation.
#[derive(Debug, PartialEq)]
pub(crate) struct Lost {
    pub donor: Incarnation,
    pub joiner: Incarnation,
}
