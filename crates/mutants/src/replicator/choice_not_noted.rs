//! The control state does not note that the cluster goes on with one in-doubt database (rule 13).
//!
//! That database executes its DDL again. One that was away meanwhile has it once, and goes on beside it.

pub(crate) const MISTAKE: &str =
    "nodes that were away do not learn that the cluster goes on with one in-doubt database (rule 13)";
