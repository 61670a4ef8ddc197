//! A key of any kind speaks for a replica id.
//!
//! Whoever is admitted votes and promises in another's name.

pub(crate) const MISTAKE: &str = "a key of any kind speaks for a replica id";
