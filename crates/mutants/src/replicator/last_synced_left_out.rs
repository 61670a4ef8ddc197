//! Flow control leaves out the last member that keeps pace with the writers.
//!
//! Then nothing bounds the backlog.

pub(crate) const MISTAKE: &str =
    "the last member that keeps pace with the writers is left out of flow control";
