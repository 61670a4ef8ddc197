//! In an error vote on a seqno that all had applied, no success counts (rule 22).
//!
//! A single voter's error wins, and a database without the write-set counts as good. Found by the simulator.

pub(crate) const MISTAKE: &str =
    "in a vote on what all had applied nobody's success counts (rule 22)";
