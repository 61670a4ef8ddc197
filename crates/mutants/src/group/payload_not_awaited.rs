//! A member acknowledges an order record before it has the payload (rule 8).
//!
//! The origin's and the leader's machines die together. A majority had acknowledged the position, but no remaining
//! member has the write-set.

pub(crate) const MISTAKE: &str =
    "an order record is acknowledged before its payload is there (rule 8)";
