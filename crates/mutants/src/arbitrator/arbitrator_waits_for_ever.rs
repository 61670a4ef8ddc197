//! An arbitrator waits for a cluster without end.
//!
//! The operator never hears of a wrong address.

pub(crate) const MISTAKE: &str =
    "an arbitrator waits for a cluster without end";
