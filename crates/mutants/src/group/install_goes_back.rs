//! A member installs a checkpoint that lies below what it has delivered (rule 1).
//!
//! It had asked twice. What was applied in between is delivered again.

pub(crate) const MISTAKE: &str =
    "a checkpoint is installed below what was delivered (rule 1)";
