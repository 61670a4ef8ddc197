//! A write-set that its client has given up, and that is ordered after all, is not applied at its origin (rule 7).
//!
//! All other nodes have the write-set; its origin does not.

pub(crate) const MISTAKE: &str =
    "what its client has given up and is ordered after all is not applied at its origin (rule 7)";
