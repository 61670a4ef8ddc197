//! The log removes segments that the member itself still needs (rule 12).
//!
//! Entries that it has not applied or passed on are gone after a restart.

pub(crate) const MISTAKE: &str =
    "segments are removed that the member itself still needs (rule 12)";
