//! An arbitrator keeps no more than `gcache.size` (rule 12).
//!
//! Its acknowledgement has committed what a node has not received; when the origin dies, the two are a
//! majority, and nobody has it.

pub(crate) const MISTAKE: &str =
    "an arbitrator drops what a node has not received yet (rule 12)";
