//! A second connection replaces the existing one.
//!
//! Frames are lost each time both sides call.

pub(crate) const MISTAKE: &str =
    "a second connection takes the place of the one that stands";
