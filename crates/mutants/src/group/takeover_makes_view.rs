//! Taking over leadership makes a view (rule 2).
//!
//! A view eats a seqno, drains all appliers, and with unchanged membership wsrep-lib rolls back
//! every streaming transaction on all nodes.

pub(crate) const MISTAKE: &str = "taking over leadership makes a view (rule 2)";
