//! Promises of a majority of the last committed view are enough, even if the log has later views (rule 3).
//!
//! View 1 is {A, B, C}; view 2 = {A, B, C, D, E} is in the logs of A, B, D, E. C knows only view 1. C gets B's
//! promise and leads with a majority of view 1, while A, D, E are a majority of view 2: two primary components.
//! Planted where promises are counted, and where the leader checks whether it hears a majority, which is the second
//! guard.

pub(crate) const MISTAKE: &str =
    "promises of a majority of the last committed view are enough, whatever later views the log has (rule 3)";
