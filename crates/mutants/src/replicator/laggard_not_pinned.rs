//! A log keeps entries that another member's log lacks only within certification's memory and `gcache.size` (rule
//! 12).
//!
//! A member behind a slow link falls beyond that: it gets a log checkpoint and must be restarted. If then all others
//! but an arbitrator are lost, their acknowledged commits are lost.

pub(crate) const MISTAKE: &str = "the log drops what a member's log lacks (rule 12)";
