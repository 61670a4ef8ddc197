//! A node notes a total-order action or an override beside its log, and does not flush the log first (rules 11, 13).
//!
//! If all nodes lose power, no log has the action that every database may hold; or a database has an override in its
//! past that no log counts as committed.

pub(crate) const MISTAKE: &str =
    "a note that presumes entries of the log is flushed before them (rules 11, 13)";
