//! A candidate leads although a promiser's log is better (rules 1, 3).
//!
//! The new leader replaces committed entries that it has never seen: acknowledged commits are lost.

pub(crate) const MISTAKE: &str =
    "a candidate leads although a promiser's log is better (rules 1, 3)";
