//! A fetcher does not request a lost part of a bulk payload again.
//!
//! No member ever holds all parts: the client waits for ever.

pub(crate) const MISTAKE: &str = "a lost part of a large payload is not asked for again";
