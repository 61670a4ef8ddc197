//! A flush leaves out the directory, which holds the name of a new segment.
//!
//! A power loss takes a whole segment that was flushed and acknowledged.

pub(crate) const MISTAKE: &str =
    "a flush leaves out the directory, where a new segment has its name";
