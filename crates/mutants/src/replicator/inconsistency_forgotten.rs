//! A node that was found inconsistent takes its database for the cluster's when it connects again (rule 22).
//!
//! Its server runs on, and the write-sets that it did not apply have passed its order: it takes the rest by IST and
//! serves. Found by the simulator.

pub(crate) const MISTAKE: &str = "a node that was found inconsistent takes its database for the cluster's when it connects again (rule 22)";
