//! The last applier may leave.
//!
//! Nobody applies any more.

pub(crate) const MISTAKE: &str =
    "the last applier may leave";
