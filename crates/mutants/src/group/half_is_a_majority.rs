//! Half of the votes, rounded down, is a majority (rules 1, 3).
//!
//! Both halves of a partition order and elect: two primary components, two contents under one GTID.

pub(crate) const MISTAKE: &str = "half of the votes, rounded down, is a majority (rules 1, 3)";
