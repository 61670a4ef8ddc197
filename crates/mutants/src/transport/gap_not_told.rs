//! Nobody hears that frames to a peer were dropped.
//!
//! What was in them is not sent again until somebody asks.

pub(crate) const MISTAKE: &str =
    "nobody hears that frames to a peer were dropped";
