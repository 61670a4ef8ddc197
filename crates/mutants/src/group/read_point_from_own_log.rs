//! A reader takes the end of its own log as the read point (rule 17).
//!
//! A current read on a node that has just been cut off misses a commit that was acknowledged elsewhere before the
//! read began.

pub(crate) const MISTAKE: &str = "a reader takes its own log's end for the group's (rule 17)";
