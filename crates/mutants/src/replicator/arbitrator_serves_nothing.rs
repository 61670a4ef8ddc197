//! A node does not ask an arbitrator for missing entries.
//!
//! If no other member has the entries, acknowledged commits cannot be applied: the node waits for an SST that no
//! member can give.

pub(crate) const MISTAKE: &str = "missing entries are not asked of an arbitrator";
