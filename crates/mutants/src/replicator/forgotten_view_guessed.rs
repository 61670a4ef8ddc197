//! If the group has forgotten the database's view, a replay begins in the oldest view that the group remembers (rule
//! 6).
//!
//! As with `ReplayBeginsInLaterView`, but only after a long absence.

pub(crate) const MISTAKE: &str =
    "a replay begins in the oldest view that is remembered, if the database's is forgotten (rule 6)";
