//! A joiner still waits for an SST that it requested before a fork point (rule 11).
//!
//! The SST holds dropped write-sets, or never comes. Found by the simulator.

pub(crate) const MISTAKE: &str =
    "a snapshot that was asked for before a fork is still waited for behind it (rule 11)";
