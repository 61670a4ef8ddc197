//! A node also reads a peer's frames behind an unreadable one.
//!
//! One batch of nonsense causes thousands of warnings.

pub(crate) const MISTAKE: &str =
    "what a peer sent behind an unreadable frame is read, too";
