//! A node that was found inconsistent connects again with its database (rule 22).
//!
//! Its server still runs, and the write-sets that it did not apply have passed its commit order. It gets the others
//! by IST and serves. Found by the simulator.

pub(crate) const MISTAKE: &str = "a node that was found inconsistent takes its database for the cluster's when it connects again (rule 22)";
