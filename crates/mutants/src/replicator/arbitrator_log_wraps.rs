//! An arbitrator keeps at most `gcache.size` (rule 12).
//!
//! Its acknowledgement has committed entries that another node has not received. When the origin dies, the two are a
//! majority, but neither has the entries.

pub(crate) const MISTAKE: &str =
    "an arbitrator drops what a node has not received yet (rule 12)";
