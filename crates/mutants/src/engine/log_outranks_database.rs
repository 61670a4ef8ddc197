//! A node that is bootstrapped goes on with its log although its database is ahead of it (rule 5).
//!
//! What only databases hold is dropped, and its seqnos are given to something else.

pub(crate) const MISTAKE: &str =
    "a node that is bootstrapped goes on with its log although its database is ahead of it (rule 5)";
