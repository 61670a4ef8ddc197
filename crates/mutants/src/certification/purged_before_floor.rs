//! Certification purges keys above the floor (rule 16).
//!
//! A write-set passes on one node and fails on another, or passes where it should fail.

pub(crate) const MISTAKE: &str = "keys above the floor are purged (rule 16)";
