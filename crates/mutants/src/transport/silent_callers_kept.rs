//! Callers that say nothing are kept, however many there are.
//!
//! They take the descriptors of the server.

pub(crate) const MISTAKE: &str =
    "callers that say nothing are kept, however many there are";
