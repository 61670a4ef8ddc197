//! Each line that a peer causes is written.
//!
//! One peer fills the disk of the log.

pub(crate) const MISTAKE: &str =
    "each line that a peer causes is written";
