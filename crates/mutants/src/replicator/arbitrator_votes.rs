//! An arbitrator counts as synced and takes part in error votes (rule 22).
//!
//! It has applied nothing and reports success for every seqno. If one node with a database is left, an error that all
//! databases would have counts as that node's own error.

pub(crate) const MISTAKE: &str = "an arbitrator votes on apply errors (rule 22)";
