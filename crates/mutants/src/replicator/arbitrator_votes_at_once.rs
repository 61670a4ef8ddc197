//! An arbitrator has a vote as soon as it certifies in step (rule 12).
//!
//! Its log begins at its admission. What was committed before, and a slow node has not received, dies with
//! the origin; the slow node and the arbitrator are a majority, and nobody has it.

pub(crate) const MISTAKE: &str =
    "an arbitrator votes before the nodes have what its log lacks (rule 12)";
