//! A member delivers what it has appended, committed or not (rules 1, 6).
//!
//! The tail of a log may still be replaced after a takeover; what has been applied cannot be
//! undone.

pub(crate) const MISTAKE: &str =
    "a member delivers what it has appended, committed or not (rules 1, 6)";
