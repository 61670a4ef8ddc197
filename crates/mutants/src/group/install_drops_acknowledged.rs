//! A late log checkpoint drops entries that the member has acknowledged since (rule 1).
//!
//! A member that asked twice gets two log checkpoints. Before the second one arrives, the member may have
//! acknowledged entries above it. They were committed with its help, and now it does not hold them.

pub(crate) const MISTAKE: &str =
    "a checkpoint that comes late drops what its member has acknowledged since (rule 1)";
