//! The last applier may leave.
//!
//! Then no thread applies write-sets.

pub(crate) const MISTAKE: &str =
    "the last applier may leave";
