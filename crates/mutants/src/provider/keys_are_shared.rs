//! The server's exclusive keys are replicated as shared ones.
//!
//! Both of two conflicting transactions commit.

pub(crate) const MISTAKE: &str =
    "the server's exclusive keys are replicated as shared ones";
