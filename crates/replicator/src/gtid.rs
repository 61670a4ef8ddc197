//! Global transaction ids.

use std::fmt;

use trireme_certification::Seqno;
use trireme_group::Uuid;

/// Seqno of an entry that was not ordered.
pub const UNDEFINED_SEQNO: Seqno = -1;

/// A position in a history, as the server sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub struct Gtid {
    /// The history (cluster uuid).
    pub uuid: Uuid,
    /// Counts write-sets, TOI actions and primary views from 1.
    pub seqno: Seqno,
}

impl Gtid {
    /// Not ordered: exactly nil and -1 (server-contract.md#meta-data).
    pub const UNDEFINED: Gtid = Gtid {
        uuid: Uuid::NIL,
        seqno: UNDEFINED_SEQNO,
    };

    /// Returns true for a position in a history, false if only the history is known.
    pub fn is_known(self) -> bool {
        !self.uuid.is_nil() && self.seqno >= 0
    }

    /// Returns true if `other` is in the same history, and higher.
    pub fn precedes(self, other: Gtid) -> bool {
        self.uuid == other.uuid && self.seqno < other.seqno
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.uuid, self.seqno)
    }
}
