//! A restart reads the payloads of everything above the newest snapshot of the state into memory.
//!
//! After a long pause that is all that the others committed meanwhile: the process runs out of memory, at each start anew.

pub(crate) const MISTAKE: &str = "a restart takes memory without a bound";
