//! Segments are removed that the member itself still needs (rule 12).
//!
//! What it has not applied or given on is gone after a restart.

pub(crate) const MISTAKE: &str =
    "segments are removed that the member itself still needs (rule 12)";
