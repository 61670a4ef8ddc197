//! A node without free descriptors tries to accept all the time.
//!
//! Its reactor does nothing else and uses a whole processor.

pub(crate) const MISTAKE: &str =
    "a node that is out of descriptors tries to accept all the time";
