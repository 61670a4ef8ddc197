//! The noted outcome leaves out a dependency that is already applied here (rule 16).
//!
//! A joiner that gets its IST from here applies the write-set in parallel with its dependency.

pub(crate) const MISTAKE: &str =
    "the log does not note a dependency that is applied here already (rule 16)";
