//! A node that is out of descriptors tries to accept all the time.
//!
//! Its reactor does nothing else, and takes a processor.

pub(crate) const MISTAKE: &str =
    "a node that is out of descriptors tries to accept all the time";
