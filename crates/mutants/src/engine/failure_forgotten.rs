//! When a process disconnects, it forgets that the log's volume has failed (rule 4).
//!
//! It connects again with a log that lacks acknowledged entries, and counts as intact.

pub(crate) const MISTAKE: &str =
    "a process forgets with its connection that the log's volume has failed (rule 4)";
