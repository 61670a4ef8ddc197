//! A dependency that is applied here already is not noted with the outcome (rule 16).
//!
//! Who joins from here applies the write-set beside what it depends on.

pub(crate) const MISTAKE: &str =
    "the log does not note a dependency that is applied here already (rule 16)";
