//! A joiner takes an SST before its donor has reported to the order (rule 11).
//!
//! The donor is cut off, and has gone on by a forced view: the SST has that branch's write-sets. Found by the simulator.

pub(crate) const MISTAKE: &str =
    "a snapshot is taken before the order knows of its donor's end (rule 11)";
