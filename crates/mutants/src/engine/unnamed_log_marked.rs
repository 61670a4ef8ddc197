//! The mark of a new log replaces the one of an earlier log before the data directory names the new log (rule 4).
//!
//! The process is killed in between. The earlier log's volume is mounted again: the data directory still names that
//! log, and no mark tells what it has lost.

pub(crate) const MISTAKE: &str = "a new log's mark replaces the earlier log's too early (rule 4)";
