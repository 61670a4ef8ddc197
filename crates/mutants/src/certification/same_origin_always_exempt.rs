//! Write-sets of one origin never conflict, whatever it has abandoned (rule 9).
//!
//! The exemption rests on the origin's row locks. A write-set that its origin has abandoned, and that is ordered
//! after all, holds no locks there: the origin's next transaction has not seen it and overwrites it.

pub(crate) const MISTAKE: &str =
    "write-sets of one origin never conflict, whatever it has abandoned (rule 9)";
