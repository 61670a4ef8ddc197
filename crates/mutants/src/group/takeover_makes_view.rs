//! A leader change makes a view (rule 2).
//!
//! A view takes a seqno and drains all appliers. With unchanged membership, wsrep-lib rolls back every streaming
//! transaction on all nodes.

pub(crate) const MISTAKE: &str = "taking over leadership makes a view (rule 2)";
