//! A damaged log is repaired before it is noted that this replica may have forgotten something (rule 4).
//!
//! The process dies in between, and the next one finds a log that merely ends: it counts as intact.

pub(crate) const MISTAKE: &str =
    "a damaged log is repaired before it is noted that entries may be missing (rule 4)";
