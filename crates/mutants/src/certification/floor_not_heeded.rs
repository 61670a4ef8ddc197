//! A write-set that has seen less than what was purged passes (rule 16).
//!
//! With the keys of what it has not seen the conflict is gone from the index: a lost update.

pub(crate) const MISTAKE: &str =
    "a write-set that has seen less than what was purged passes (rule 16)";
