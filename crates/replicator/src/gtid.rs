//! Global transaction ids.

use std::fmt;

use trireme_certification::Seqno;
use trireme_group::Uuid;

/// Seqno of what was not ordered.
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
    /// Not ordered: exactly nil and -1 (contract 2.7).
    pub const UNDEFINED: Gtid = Gtid {
        uuid: Uuid::NIL,
        seqno: UNDEFINED_SEQNO,
    };
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.uuid, self.seqno)
    }
}
