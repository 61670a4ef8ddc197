//! The last member that keeps pace with the writers is left out of flow control.
//!
//! Nobody bounds the backlog any more.

pub(crate) const MISTAKE: &str =
    "the last member that keeps pace with the writers is left out of flow control";
