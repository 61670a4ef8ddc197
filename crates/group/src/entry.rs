//! Entries of the replicated log.

use bytes::Bytes;

use crate::configuration::Configuration;
use crate::ids::{Position, SubmissionId, Term};

/// One entry of the replicated log. (position, term) names its content: two logs that agree on the pair agree on
/// everything up to it.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Entry {
    /// Its position in the log.
    pub position: Position,
    /// The term whose leader put it there.
    pub term: Term,
    /// Its content.
    pub body: Body,
}

/// The content of an entry.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum Body {
    /// Term start, the first entry of a term, or the second behind a forced view. Older entries are committed only through
    /// the first (rule 1).
    TermStart,
    /// The members and their weights from here on.
    Configuration(Configuration),
    /// A member's submission, whose payload is opaque here.
    Submission {
        /// Its id.
        id: SubmissionId,
        /// Its payload.
        payload: Bytes,
    },
    /// A voided submission, in place of withdrawn ones (rule 7). It uses up the numbers from the origin's last ordered
    /// one to this one. One entry stands for all of them: otherwise an early one could be lost although a later one is
    /// ordered (rule 9).
    Voided {
        /// The last withdrawn submission.
        id: SubmissionId,
    },
}

impl Entry {
    /// The submission in this entry, voided or not.
    pub fn submission(&self) -> Option<SubmissionId> {
        match &self.body {
            Body::Submission { id, .. } | Body::Voided { id } => Some(*id),
            Body::TermStart | Body::Configuration(_) => None,
        }
    }

    /// Approximate size in memory and on the wire, in bytes.
    pub fn size_bytes(&self) -> usize {
        64 + match &self.body {
            Body::Submission { payload, .. } => payload.len(),
            Body::Configuration(c) => c.members.len() * 256,
            Body::TermStart | Body::Voided { .. } => 0,
        }
    }

    /// Length of the submission's payload, if the entry has it; otherwise 0.
    pub fn payload_bytes(&self) -> usize {
        match &self.body {
            Body::Submission { payload, .. } => payload.len(),
            _ => 0,
        }
    }

    /// Returns these bytes of this submission's payload, as far as they exist; None if this is another entry.
    pub fn payload_part(&self, id: SubmissionId, offset: u32, len: u32) -> Option<Bytes> {
        match &self.body {
            Body::Submission { id: found, payload } if *found == id => {
                Some(part_of(payload, offset, len))
            }
            _ => None,
        }
    }

    /// Removes a submission's payload.
    pub fn drop_payload(&mut self) {
        if let Body::Submission { payload, .. } = &mut self.body {
            *payload = Bytes::new();
        }
    }
}

/// Returns these bytes of a payload, as far as they exist, without a copy.
pub(crate) fn part_of(payload: &Bytes, offset: u32, len: u32) -> Bytes {
    let from = (offset as usize).min(payload.len());
    let until = (from + len as usize).min(payload.len());
    payload.slice(from..until)
}
