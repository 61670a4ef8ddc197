//! Write-sets behind a view are applied before it (rule 16).
//!
//! A view closes streaming appliers and changes who is a member; write-sets that depend on it must
//! find that done.

pub(crate) const MISTAKE: &str = "write-sets behind a view are applied before it (rule 16)";
