//! The leader keeps leadership although its disk does not answer.
//!
//! Its own writes, a promise or the state beside the log, hold up all members.

pub(crate) const MISTAKE: &str =
    "the leader keeps its leadership although its disk does not answer";
