//! A peer that sends unreadable frames stays connected.
//!
//! The two sides do not agree on the messages sent.

pub(crate) const MISTAKE: &str =
    "a peer that sends what cannot be read stays connected";
