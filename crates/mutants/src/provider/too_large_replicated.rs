//! A write-set of which a part was refused is replicated.
//!
//! The others commit half a transaction.

pub(crate) const MISTAKE: &str =
    "a write-set of which a part was refused is replicated";
