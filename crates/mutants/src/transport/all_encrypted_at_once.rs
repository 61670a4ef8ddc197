//! All that waits is encrypted in one hold of the lock.
//!
//! A large write-set holds up all commits of the node meanwhile.

pub(crate) const MISTAKE: &str = "all that waits is encrypted in one hold of the lock";
