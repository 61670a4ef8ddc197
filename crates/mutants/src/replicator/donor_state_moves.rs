//! Commits go on at a donor while it takes its snapshot (rule 19).
//!
//! The snapshot is not the state at the position that the joiner is told.

pub(crate) const MISTAKE: &str = "commits go on at a donor while it takes its snapshot (rule 19)";
