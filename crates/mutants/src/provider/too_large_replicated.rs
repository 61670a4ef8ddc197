//! A write-set is replicated although a part of it was refused.
//!
//! The other nodes commit half a transaction.

pub(crate) const MISTAKE: &str =
    "a write-set of which a part was refused is replicated";
