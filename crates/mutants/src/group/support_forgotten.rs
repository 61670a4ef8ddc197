//! A node without a history does not know any more, after a restart, whose founding it has supported.
//!
//! The founder has all support, founds, and is cut off; the others are restarted with another node in its
//! place, and found a second cluster.

pub(crate) const MISTAKE: &str =
    "whom a node has supported as the founder of a cluster is forgotten at a restart";
