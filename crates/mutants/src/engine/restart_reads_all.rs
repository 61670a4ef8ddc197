//! A restart reads all payloads above the newest log checkpoint into memory.
//!
//! After a long pause these are all commits of the other members: the process runs out of memory, at each start
//! again.

pub(crate) const MISTAKE: &str = "a restart takes memory without a bound";
