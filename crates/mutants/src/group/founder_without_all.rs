//! A node founds a cluster with the support of more than half of the expected nodes.
//!
//! The nodes that have not supported it, and do not hear of it, found another cluster with a replacement of the
//! founder.

pub(crate) const MISTAKE: &str =
    "a cluster is founded without the support of all nodes that are expected";
