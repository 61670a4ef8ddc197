//! A member acknowledges an entry although its flush has failed, or has not ended (rules 4, 23).
//!
//! After a power loss the acknowledged entry is gone, and no member knows.

pub(crate) const MISTAKE: &str =
    "an entry is acknowledged although its flush has failed, or has not ended (rules 4, 23)";
