//! Write-sets of one origin never conflict, whatever it has abandoned (rule 9).
//!
//! The exemption rests on the origin's row locks. What it has given up and is ordered after all
//! holds none: its next transaction has not seen it and overwrites it.

pub(crate) const MISTAKE: &str =
    "write-sets of one origin never conflict, whatever it has abandoned (rule 9)";
