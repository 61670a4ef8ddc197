//! A log that ends below its mark counts as intact (rule 4).
//!
//! Members that miss an acknowledged entry elect each other.

pub(crate) const MISTAKE: &str =
    "a log that ends below its mark counts as one that has forgotten nothing (rule 4)";
