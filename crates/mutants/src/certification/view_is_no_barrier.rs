//! Write-sets behind a view are applied before it (rule 16).
//!
//! A view closes streaming appliers and changes the membership; write-sets that depend on it must come after that.

pub(crate) const MISTAKE: &str = "write-sets behind a view are applied before it (rule 16)";
