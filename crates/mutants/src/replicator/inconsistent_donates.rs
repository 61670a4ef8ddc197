//! An inconsistent donor may still hold its state and send it (rule 22).
//!
//! The joiner gets a database that lacks a write-set. Found by the simulator.

pub(crate) const MISTAKE: &str =
    "a donor found inconsistent may still hold its state and send it (rule 22)";
