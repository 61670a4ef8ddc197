//! Write-sets of a member that has not joined count (rule 9).
//!
//! Its certification has no base yet: what it has seen means nothing.

pub(crate) const MISTAKE: &str = "write-sets of a member that has not joined count (rule 9)";
