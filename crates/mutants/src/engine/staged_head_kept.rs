//! The first bytes of a staged payload are not written again when it is submitted (rule 8).
//!
//! What its origin has seen is sampled then: the log holds another write-set than was ordered.

pub(crate) const MISTAKE: &str =
    "the first bytes of a staged payload stay as they were before it was submitted (rule 8)";
