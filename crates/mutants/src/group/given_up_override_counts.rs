//! A node that heard of a forced view, and is primary without it, still counts as overruled (rule 11).
//!
//! The forced view has given way to the majority, and nobody has it any more. The node never leads again.

pub(crate) const MISTAKE: &str =
    "a forced view that a node heard of keeps it from leading after a majority went on without it (rule 11)";
