//! A failed connect leaves its connection behind.
//!
//! The server cannot connect again.

pub(crate) const MISTAKE: &str =
    "a connect that failed leaves its connection behind";
