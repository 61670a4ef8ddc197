//! A joiner skips the first entry that it misses (rule 6).
//!
//! Its database has a hole.

pub(crate) const MISTAKE: &str = "a joiner skips the first entry that it misses (rule 6)";
