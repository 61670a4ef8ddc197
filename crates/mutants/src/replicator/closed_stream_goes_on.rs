//! A fragment passes certification after a view at which the servers closed its transaction.
//!
//! The other nodes have undone the transaction; the origin commits it.

pub(crate) const MISTAKE: &str = "a fragment passes after its transaction was closed by a view";
