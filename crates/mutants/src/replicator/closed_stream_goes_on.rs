//! A fragment passes certification after a view at which the servers have closed its transaction.
//!
//! It finds no transaction: its origin commits what the others have undone.

pub(crate) const MISTAKE: &str = "a fragment passes after its transaction was closed by a view";
