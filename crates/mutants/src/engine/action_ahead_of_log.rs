//! A node notes that a total-order action begins, and does not flush its log first (rule 13).
//!
//! If all nodes lose power within the action, no log has it, and every database may.

pub(crate) const MISTAKE: &str =
    "the log is not flushed before a total-order action begins (rule 13)";
