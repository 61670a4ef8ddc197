//! A replay begins in the view that the node has come back into, not in the one that its database was in
//! (rule 6).
//!
//! Origins of streaming transactions have other names in it: the server undoes what it has of them, and
//! their ends find no transaction.

pub(crate) const MISTAKE: &str =
    "a replay begins in the view that the node has come back into, not in its database's (rule 6)";
