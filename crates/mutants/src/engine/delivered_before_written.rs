//! An entry is delivered before the own log, which counts for its commit, has it (rule 4).
//!
//! A client is told of a commit that only the leader holds, if the write fails.

pub(crate) const MISTAKE: &str =
    "an entry is delivered before the own log, which counts for its commit, has it (rule 4)";
