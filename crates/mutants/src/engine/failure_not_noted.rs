//! The engine does not note a failed write, flush or promise.
//!
//! The volume has dropped acknowledged entries. When it is mounted again, the member counts as intact (rule 4).

pub(crate) const MISTAKE: &str =
    "a failed write, flush or promise is noted nowhere";
