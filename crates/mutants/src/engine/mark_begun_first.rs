//! The engine replaces the mark before the log has noted the mark's message (rule 4).
//!
//! The process ends in between. The next one finds a mark that fits a log which lacks acknowledged entries.

pub(crate) const MISTAKE: &str =
    "the mark is replaced before the log notes what it has told (rule 4)";
