//! A snapshot that was asked for before a fork is still waited for behind it (rule 11).
//!
//! It holds what was dropped, or never comes. Found by the simulator.

pub(crate) const MISTAKE: &str =
    "a snapshot that was asked for before a fork is still waited for behind it (rule 11)";
