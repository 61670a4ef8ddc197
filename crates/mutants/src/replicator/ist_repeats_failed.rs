//! A joiner applies write-sets that failed certification (rules 6, 16).
//!
//! It ignores the recorded outcome: the write-set is in its database and in no other.

pub(crate) const MISTAKE: &str = "a joiner applies what failed certification (rules 6, 16)";
