//! What is queued when the mesh closes is not sent.
//!
//! The others wait for a node that has left.

pub(crate) const MISTAKE: &str =
    "what is queued when the mesh closes is not sent";
