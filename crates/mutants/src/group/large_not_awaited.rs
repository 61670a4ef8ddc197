//! The origin submits a bulk payload before a majority holds it.
//!
//! Its order record reaches the other members long before the payload, and everything behind it waits (rule 8).

pub(crate) const MISTAKE: &str = "a large payload is submitted before a majority holds it";
