//! A large payload is submitted before a majority holds it.
//!
//! Its order record reaches the others long before it does, and everything behind it waits (rule 8).

pub(crate) const MISTAKE: &str = "a large payload is submitted before a majority holds it";
