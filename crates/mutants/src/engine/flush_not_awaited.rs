//! An entry is acknowledged although its flush has failed, or has not ended (rules 4, 23).
//!
//! What was acknowledged is gone after a power loss, and nobody knows.

pub(crate) const MISTAKE: &str =
    "an entry is acknowledged although its flush has failed, or has not ended (rules 4, 23)";
