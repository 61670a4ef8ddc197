//! The engine delivers an entry before it has written the entry to its own log, which counts for the commit (rule 4).
//!
//! If the write fails, a client has heard of a commit that only the leader holds.

pub(crate) const MISTAKE: &str =
    "an entry is delivered before the own log, which counts for its commit, has it (rule 4)";
