//! A database beyond a fork of its history is brought up to date by IST (rule 11).
//!
//! What the fork dropped stays in it, under GTIDs that hold something else elsewhere.

pub(crate) const MISTAKE: &str =
    "a database beyond a fork of its history is brought up to date by IST (rule 11)";
