//! Appliers do not wait for what a write-set depends on (rule 16).
//!
//! Two write-sets of one row are applied side by side, in any order.

pub(crate) const MISTAKE: &str = "appliers do not wait for what a write-set depends on (rule 16)";
