//! A donor goes on committing while it takes its SST (rule 19).
//!
//! The SST is not the state at the position that the joiner hears.

pub(crate) const MISTAKE: &str = "commits go on at a donor while it takes its snapshot (rule 19)";
