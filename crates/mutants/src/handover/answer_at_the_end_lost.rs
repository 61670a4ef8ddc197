//! An answer that comes at the end of the caller's time limit is dropped.
//!
//! The caller believes that a completed action was not done.

pub(crate) const MISTAKE: &str =
    "an answer that comes at the end of the timeout is dropped";
