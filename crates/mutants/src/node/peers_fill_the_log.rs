//! The node writes every log line that a peer causes.
//!
//! One peer fills the disk of the log.

pub(crate) const MISTAKE: &str =
    "each line that a peer causes is written";
