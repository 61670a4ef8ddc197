//! A checkpoint that comes late drops what its member has acknowledged since (rule 1).
//!
//! A member that asked twice is sent two checkpoints. By the time that the second one is there it may have
//! acknowledged entries above it: they were committed with its help, and it does not hold them any more.

pub(crate) const MISTAKE: &str =
    "a checkpoint that comes late drops what its member has acknowledged since (rule 1)";
