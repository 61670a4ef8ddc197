//! A node notes that a total-order action has ended before grastate.dat names the history again (rule 13).
//!
//! If it is killed in between, nothing explains the file, and the database counts as unknown.

pub(crate) const MISTAKE: &str =
    "the end of a total-order action is noted before grastate.dat names the history (rule 13)";
