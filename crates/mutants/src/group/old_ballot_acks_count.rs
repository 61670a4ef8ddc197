//! Acknowledgements of another ballot count (rule 1).
//!
//! A late acknowledgement, given for another entry at the same position, is counted for the new
//! one. The client is told OK for an entry that one log holds; when that machine dies, the commit
//! is gone.

pub(crate) const MISTAKE: &str = "acknowledgements of another ballot count (rule 1)";
