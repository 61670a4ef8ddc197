//! An in-doubt database whose position covers the action counts as a success of the action (rule 13).
//!
//! If all nodes died during the error vote, and the action fails everywhere, no node keeps a database.

pub(crate) const MISTAKE: &str =
    "an action at the position of a database in doubt counts as a success in a vote (rules 13, 22)";
