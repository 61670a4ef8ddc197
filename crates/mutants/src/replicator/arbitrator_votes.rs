//! An arbitrator takes part in votes on apply errors (rule 22).
//!
//! It has applied nothing, and says so of everything: what fails on all data nodes alike counts as their
//! mistake.

pub(crate) const MISTAKE: &str = "an arbitrator votes on apply errors (rule 22)";
