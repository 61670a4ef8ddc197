//! Entries that the members of a forced view had not known as committed count as common to all branches (rule 11).
//!
//! A database of the other branch counts as one that can go on: two contents under one GTID. Found by the simulator.

pub(crate) const MISTAKE: &str =
    "what an override's members had not known to be committed counts as common to all (rule 11)";
