//! A non-primary node yields to a forced view only if a leader tells of it (rule 11).
//!
//! The leader of the nodes that were made primary has died. A majority of the last view meets the other nodes and
//! learns of the forced view from them, but goes on without it.

pub(crate) const MISTAKE: &str =
    "a majority forms again without an override that a node which is here has committed (rule 11)";
