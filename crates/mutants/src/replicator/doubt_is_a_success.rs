//! A database in doubt, whose position covers the action, counts as one on which that was a success (rule 13).
//!
//! Where all died while it was voted on, and it fails everywhere, nobody keeps a database.

pub(crate) const MISTAKE: &str =
    "an action at the position of a database in doubt counts as a success in a vote (rules 13, 22)";
