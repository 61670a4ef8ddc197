//! A replay begins in the view into which the node comes back, not in the database's view (rule 6).
//!
//! Origins of streaming transactions have other incarnations in that view. The server undoes its parts of these
//! transactions, and their last fragments find no transaction.

pub(crate) const MISTAKE: &str =
    "a replay begins in the view that the node has come back into, not in its database's (rule 6)";
