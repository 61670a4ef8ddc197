//! The first bytes of a staged payload are not written again when it is submitted (rule 8).
//!
//! The origin samples last_seen only at the submission: the log holds another write-set than the order.

pub(crate) const MISTAKE: &str =
    "the first bytes of a staged payload stay as they were before it was submitted (rule 8)";
