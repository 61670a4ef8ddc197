//! A member that was left out of flow control still stops writers.
//!
//! All members wait for the slowest one while it catches up.

pub(crate) const MISTAKE: &str =
    "a member that the group has left out of flow control goes on stopping writers";
