//! An arbitrator waits for a cluster without end.
//!
//! A wrong address is never told.

pub(crate) const MISTAKE: &str =
    "an arbitrator waits for a cluster without end";
