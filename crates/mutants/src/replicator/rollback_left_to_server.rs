//! If a rollback fragment cannot be sent yet, it is left to the server, which sends it once it is synced (rule 7).
//!
//! A member may become donor and finish before its server hears that it is synced: the joiner writes rows that the
//! other nodes still hold.

pub(crate) const MISTAKE: &str = "a rollback fragment that cannot be sent yet is left to the server (rule 7)";
