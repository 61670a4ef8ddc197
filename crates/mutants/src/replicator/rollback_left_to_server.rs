//! A rollback fragment that cannot be sent yet is the server's business, which sends it when it is synced (rule 7).
//!
//! A donor may be chosen, and done, before its server was told so: the joiner writes rows that the others still hold.

pub(crate) const MISTAKE: &str = "a rollback fragment that cannot be sent yet is left to the server (rule 7)";
