//! A member installs a log checkpoint below its delivered entries (rule 1).
//!
//! It had asked twice. The entries applied in between are delivered again.

pub(crate) const MISTAKE: &str =
    "a checkpoint is installed below what was delivered (rule 1)";
