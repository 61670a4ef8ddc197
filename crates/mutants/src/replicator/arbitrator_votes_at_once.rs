//! An arbitrator has a vote as soon as it certifies in step (rule 12).
//!
//! Its log begins at its admission. Entries committed before, which a slow node has not received, die with the
//! origin. The slow node and the arbitrator are a majority, but neither has these entries.

pub(crate) const MISTAKE: &str =
    "an arbitrator votes before the nodes have what its log lacks (rule 12)";
