//! What a peer sent behind an unreadable frame is read, too.
//!
//! One batch of nonsense is thousands of warnings.

pub(crate) const MISTAKE: &str =
    "what a peer sent behind an unreadable frame is read, too";
