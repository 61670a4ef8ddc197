//! A member that the group has left out of flow control goes on stopping writers.
//!
//! Everybody waits for the slowest while it catches up.

pub(crate) const MISTAKE: &str =
    "a member that the group has left out of flow control goes on stopping writers";
