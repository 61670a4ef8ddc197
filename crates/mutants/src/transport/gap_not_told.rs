//! The node does not hear that frames to a peer were dropped.
//!
//! Their contents are not sent again until the peer asks.

pub(crate) const MISTAKE: &str =
    "nobody hears that frames to a peer were dropped";
