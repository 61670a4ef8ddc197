//! A reader takes its own log's end for the group's (rule 17).
//!
//! A current read on a node that was cut off a moment ago misses a commit that was acknowledged
//! elsewhere before it began.

pub(crate) const MISTAKE: &str = "a reader takes its own log's end for the group's (rule 17)";
