//! A server that connects anew does not see that a missed view repeats the one before.
//!
//! It keeps the streaming transactions that the other nodes have undone at that view.

pub(crate) const MISTAKE: &str = "a server that connects anew does not see that a view repeats the one before";
