//! Appliers do not wait for the dependencies of a write-set (rule 16).
//!
//! Two write-sets of one row are applied in parallel, in any order.

pub(crate) const MISTAKE: &str = "appliers do not wait for what a write-set depends on (rule 16)";
