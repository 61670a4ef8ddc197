//! The engine repairs a damaged log before it notes that this replica may be amnesiac (rule 4).
//!
//! The process dies in between, and the next one finds a log without damage: it counts as intact.

pub(crate) const MISTAKE: &str =
    "a damaged log is repaired before it is noted that entries may be missing (rule 4)";
