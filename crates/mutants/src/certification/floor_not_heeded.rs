//! A write-set whose last_seen is below the purged seqnos passes certification (rule 16).
//!
//! The keys of a conflicting write-set are gone from the index: a lost update.

pub(crate) const MISTAKE: &str =
    "a write-set that has seen less than what was purged passes (rule 16)";
