//! A node without a history forgets at a restart which founder it has supported.
//!
//! The founder has all support, founds, and is cut off. The other nodes are restarted with a replacement of the
//! founder, and found a second cluster.

pub(crate) const MISTAKE: &str =
    "whom a node has supported as the founder of a cluster is forgotten at a restart";
