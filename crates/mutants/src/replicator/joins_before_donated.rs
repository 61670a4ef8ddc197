//! A joiner counts as joined as soon as it has its state, whatever its donor must still send (rule 7).
//!
//! It writes rows that the other nodes still hold for a transaction that it has only in part.

pub(crate) const MISTAKE: &str = "a joiner does not wait for the end of its transfer (rule 7)";
