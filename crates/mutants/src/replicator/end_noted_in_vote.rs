//! A node notes that a total-order action has ended although an error vote keeps the history out of grastate.dat (rules
//! 13 and 22).
//!
//! If it is killed in between, nothing explains the file, and the database counts as unknown.

pub(crate) const MISTAKE: &str =
    "the end of a total-order action is noted while an error vote keeps the history out of grastate.dat (rule 13)";
