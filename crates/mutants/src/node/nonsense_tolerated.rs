//! A peer that sends what cannot be read stays connected.
//!
//! The two sides do not agree on what was said.

pub(crate) const MISTAKE: &str =
    "a peer that sends what cannot be read stays connected";
