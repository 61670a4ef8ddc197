//! An answer that comes at the end of the patience is dropped.
//!
//! The caller takes for undone what was done.

pub(crate) const MISTAKE: &str =
    "an answer that comes at the end of the patience is dropped";
