//! A log with a damaged end counts as intact (rule 4).
//!
//! Members that miss an acknowledged entry elect each other.

pub(crate) const MISTAKE: &str =
    "a log whose end is damaged is taken for one that has forgotten nothing (rule 4)";
