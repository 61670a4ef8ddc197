//! An arbitrator is chosen as the donor.
//!
//! It has nothing to send: the joiner waits for ever.

pub(crate) const MISTAKE: &str = "an arbitrator is chosen as donor";
