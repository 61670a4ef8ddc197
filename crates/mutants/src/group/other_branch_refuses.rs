//! A branch without the forced view can refuse a restarted process at once (rule 11).
//!
//! Enough nodes of its own branch are here to go on, and the other branch would yield to them. But each of them is
//! refused, and an operator gives up their acknowledged commits.

pub(crate) const MISTAKE: &str =
    "a restarted process is refused by a branch without its override, although a majority of its own is here (rule 11)";
