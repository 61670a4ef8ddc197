//! Two updates of a row do not conflict (certification).
//!
//! The second committer of two transactions that changed the same row overwrites the first one: first committer wins
//! is broken.

pub(crate) const MISTAKE: &str = "two updates of a row do not conflict (certification)";
