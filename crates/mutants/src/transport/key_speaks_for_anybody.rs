//! A key of any kind speaks for a replica id.
//!
//! Any admitted process votes and promises in another's name.

pub(crate) const MISTAKE: &str = "a key of any kind speaks for a replica id";
