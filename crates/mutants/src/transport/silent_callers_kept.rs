//! Silent callers are kept, whatever their number.
//!
//! The callers take the descriptors of the server.

pub(crate) const MISTAKE: &str =
    "callers that say nothing are kept, however many there are";
