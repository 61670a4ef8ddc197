//! A node that connects again forgets the error that counts as the outcome until the members have voted (rule 22).
//!
//! No vote gives grastate.dat its history back, as long as the process lives.

pub(crate) const MISTAKE: &str =
    "a presumed outcome is forgotten when the node connects again: grastate.dat stays without a history (rule 22)";
