//! A replay begins in the oldest view that the group remembers, if it has forgotten the database's (rule 6).
//!
//! As with `ReplayBeginsInLaterView`, but only after a long absence.

pub(crate) const MISTAKE: &str =
    "a replay begins in the oldest view that is remembered, if the database's is forgotten (rule 6)";
