//! A cluster is founded with the support of more than half of the nodes that are expected.
//!
//! Those who have not supported it, and do not hear of it, found another one with whoever takes the
//! founder's place.

pub(crate) const MISTAKE: &str =
    "a cluster is founded without the support of all nodes that are expected";
