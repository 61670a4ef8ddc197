//! Missing entries are not asked of an arbitrator.
//!
//! Where nobody else has them, acknowledged commits cannot be applied, and the node waits for a snapshot
//! that nobody can give.

pub(crate) const MISTAKE: &str = "missing entries are not asked of an arbitrator";
