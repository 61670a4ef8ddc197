//! The mark is replaced before the log notes what it has told (rule 4).
//!
//! The process ends in between, and the next one finds a mark that fits a log which misses acknowledged entries.

pub(crate) const MISTAKE: &str =
    "the mark is replaced before the log notes what it has told (rule 4)";
