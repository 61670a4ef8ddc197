//! A joiner applies what failed certification (rules 6, 16).
//!
//! It takes the recorded outcome for nothing: the write-set is in its database and in no other.

pub(crate) const MISTAKE: &str = "a joiner applies what failed certification (rules 6, 16)";
