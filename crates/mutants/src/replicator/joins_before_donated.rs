//! A joiner has joined as soon as it has its state, whatever its donor has still to say (rule 7).
//!
//! It writes rows that the others still hold for a transaction of which it was not given all.

pub(crate) const MISTAKE: &str = "a joiner does not wait for the end of its transfer (rule 7)";
