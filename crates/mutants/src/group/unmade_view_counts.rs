//! A forced view counts that was begun and cannot have been committed (rules 4, 11).
//!
//! It wins elections against commits of a majority, and two of them keep each other from going on by evidence.

pub(crate) const MISTAKE: &str =
    "a forced view counts that was begun and cannot have been committed (rules 4, 11)";
