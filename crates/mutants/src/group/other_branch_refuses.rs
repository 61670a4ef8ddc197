//! The word of a branch without the override sends a restarted process away at once (rule 11).
//!
//! Enough of its own branch are here to go on, and the other branch would give way to them; but each of them is refused, and an
//! operator gives up what they have acknowledged.

pub(crate) const MISTAKE: &str =
    "a restarted process is refused by a branch without its override, although a majority of its own is here (rule 11)";
