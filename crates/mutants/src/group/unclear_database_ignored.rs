//! A database that cannot be compared with any log is ignored (rules 4, 5).
//!
//! Write-sets that only this database holds are given up, and their seqnos are used again.

pub(crate) const MISTAKE: &str =
    "a database that cannot be compared with its log counts as none (rules 4, 5)";
