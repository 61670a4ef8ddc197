//! Entries of the replicated log.

use bytes::Bytes;

use crate::configuration::Configuration;
use crate::ids::{Ballot, Position, SubmissionId};

/// One entry of the replicated log. (position, ballot) names its content: two logs that agree on
/// the pair agree on everything up to it.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Entry {
    /// Where it stands.
    pub position: Position,
    /// Ballot whose leader put it there.
    pub ballot: Ballot,
    /// What it is.
    pub body: Body,
}

/// What an entry holds.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum Body {
    /// First entry of a ballot: older entries are committed only through it (rule 1).
    BallotStart,
    /// Membership or weights from here on.
    Configuration(Configuration),
    /// Something a member submitted; opaque here.
    Submission {
        /// Its name.
        id: SubmissionId,
        /// Its bytes.
        payload: Bytes,
    },
    /// In the place of withdrawn submissions (rule 7); uses up the numbers that follow the origin's last
    /// ordered one, up to this one. One entry for all: else it could be that an early one is lost, and what
    /// was sent behind it is not (rule 9).
    Void {
        /// The last withdrawn submission.
        id: SubmissionId,
    },
}

impl Entry {
    /// The submission in this entry, void or not.
    pub fn submission(&self) -> Option<SubmissionId> {
        match &self.body {
            Body::Submission { id, .. } | Body::Void { id } => Some(*id),
            Body::BallotStart | Body::Configuration(_) => None,
        }
    }

    /// Rough size in memory and on the wire.
    pub fn size_bytes(&self) -> usize {
        64 + match &self.body {
            Body::Submission { payload, .. } => payload.len(),
            Body::Configuration(c) => c.members.len() * 256,
            Body::BallotStart | Body::Void { .. } => 0,
        }
    }

    /// Bytes of a submission's payload, as far as it is here.
    pub fn payload_bytes(&self) -> usize {
        match &self.body {
            Body::Submission { payload, .. } => payload.len(),
            _ => 0,
        }
    }

    /// These bytes of this submission's payload, as far as there are any; None: it is another entry.
    pub fn payload_part(&self, id: SubmissionId, offset: u32, len: u32) -> Option<Bytes> {
        match &self.body {
            Body::Submission { id: found, payload } if *found == id => {
                Some(part_of(payload, offset, len))
            }
            _ => None,
        }
    }

    /// The same without a submission's payload.
    pub fn drop_payload(&mut self) {
        if let Body::Submission { payload, .. } = &mut self.body {
            *payload = Bytes::new();
        }
    }
}

/// These bytes of a payload, as far as there are any; not a copy.
pub(crate) fn part_of(payload: &Bytes, offset: u32, len: u32) -> Bytes {
    let from = (offset as usize).min(payload.len());
    let until = (from + len as usize).min(payload.len());
    payload.slice(from..until)
}
