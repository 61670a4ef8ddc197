//! All waiting frames are encrypted in one hold of the lock.
//!
//! Meanwhile a large write-set holds up all commits of the node.

pub(crate) const MISTAKE: &str = "all that waits is encrypted in one hold of the lock";
