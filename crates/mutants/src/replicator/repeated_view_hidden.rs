//! A server that connects anew does not see that a view which it missed repeats the one before.
//!
//! It keeps the streaming transactions that the others have undone at it.

pub(crate) const MISTAKE: &str = "a server that connects anew does not see that a view repeats the one before";
