//! An arbitrator has no vote.
//!
//! Neither of two nodes goes on without the other.

pub(crate) const MISTAKE: &str =
    "an arbitrator has no vote";
