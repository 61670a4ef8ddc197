//! A log keeps nothing for a joiner that pulls entries from it (rule 12).
//!
//! Under load the log drops what the joiner still needs. The joiner has handed entries to its server, so it can take no
//! SST, and its operator must restart it.

pub(crate) const MISTAKE: &str =
    "the log drops the rest of a transfer that has begun (rule 12)";
