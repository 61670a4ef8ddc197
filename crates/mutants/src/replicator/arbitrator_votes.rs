//! An arbitrator counts as synced, and takes part in votes on apply errors (rule 22).
//!
//! It has applied nothing, and says of everything that it went well: where one node with a database is
//! left, what fails there as it would have failed everywhere counts as that node's own mistake.

pub(crate) const MISTAKE: &str = "an arbitrator votes on apply errors (rule 22)";
