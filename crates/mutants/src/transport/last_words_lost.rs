//! Frames that are queued when the mesh closes are not sent.
//!
//! The other members wait for a node that has left.

pub(crate) const MISTAKE: &str =
    "what is queued when the mesh closes is not sent";
