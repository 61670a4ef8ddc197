//! A process that had no log of its own removes the mark when it ends (rule 4).
//!
//! The log's volume was not mounted in that process. When it is mounted again, no mark tells what it has lost.

pub(crate) const MISTAKE: &str = "a process without a log removes the mark of the earlier one's (rule 4)";
