//! A victim that waits for commit order is marked, but not woken (lost wake-up).
//!
//! As in [`super::abort_not_remembered`], a few steps later in the commit.

pub(crate) const MISTAKE: &str =
    "a victim that waits for commit order is marked, but not woken (lost wake-up)";
