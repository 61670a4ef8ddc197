//! Who is not primary gives way to an override only if a leader tells of it (rule 11).
//!
//! The leader of those who were made primary has died. A majority of the last view meets the others, knows of the
//! override by them, and goes on without it all the same.

pub(crate) const MISTAKE: &str =
    "a majority forms again without an override that a node which is here has committed (rule 11)";
