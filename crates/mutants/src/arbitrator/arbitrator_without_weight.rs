//! An arbitrator has no vote.
//!
//! Of two nodes neither goes on without the other.

pub(crate) const MISTAKE: &str =
    "an arbitrator has no vote";
