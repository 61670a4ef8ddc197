//! A donor found inconsistent may still hold its state and send it (rule 22).
//!
//! The joiner takes a database that lacks a write-set for the cluster's state. Found by the simulator.

pub(crate) const MISTAKE: &str =
    "a donor found inconsistent may still hold its state and send it (rule 22)";
