//! A node trusts a database that may hold a total-order action above its position (rule 13).
//!
//! The action is executed a second time, or the node differs from the other nodes by this action.

pub(crate) const MISTAKE: &str =
    "a database that may hold a total-order action above its position is believed (rule 13)";
