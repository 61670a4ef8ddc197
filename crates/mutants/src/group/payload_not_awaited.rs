//! An order record is acknowledged before its payload is there (rule 8).
//!
//! The origin's and the leader's machines die together: a majority had acknowledged the
//! position, nobody who is left has the write-set.

pub(crate) const MISTAKE: &str =
    "an order record is acknowledged before its payload is there (rule 8)";
