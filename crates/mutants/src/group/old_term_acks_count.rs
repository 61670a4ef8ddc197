//! Acknowledgements of another term count (rule 1).
//!
//! The leader counts a late acknowledgement of another entry at the same position for the new entry. The client is
//! told OK for an entry that one log holds; when that machine dies, the commit is gone.

pub(crate) const MISTAKE: &str = "acknowledgements of another term count (rule 1)";
