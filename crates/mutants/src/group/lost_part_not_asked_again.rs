//! A part of a large payload that was lost is not asked for again.
//!
//! Nobody ever holds all of it: its client waits for ever.

pub(crate) const MISTAKE: &str = "a lost part of a large payload is not asked for again";
