//! The leader keeps its leadership although its disk does not answer.
//!
//! What it must keep itself, a promise or the state beside the log, holds up everybody.

pub(crate) const MISTAKE: &str =
    "the leader keeps its leadership although its disk does not answer";
