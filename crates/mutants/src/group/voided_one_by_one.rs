//! The leader voids each withdrawn submission separately (rule 9).
//!
//! The leader has the payloads of all, and has heard only of the withdrawal of the first ones: it orders the others.
//! A rollback fragment is voided, and a later write-set of the same origin is ordered.

pub(crate) const MISTAKE: &str = "each withdrawn submission is voided by itself (rule 9)";
