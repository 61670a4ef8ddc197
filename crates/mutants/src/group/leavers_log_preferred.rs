//! The best log of a cluster that may have forgotten is that of a process that has left (rule 4).
//!
//! A process without a seat does not lead. So the candidates ask it again and again, and the cluster has no leader.

pub(crate) const MISTAKE: &str =
    "a cluster that has forgotten waits for the log of a process that has left (rule 4)";
