//! A node that has gone on alone gives way only to the leader of a primary component, not to its followers (rule 11).
//!
//! It hears a follower and not the leader: it orders nothing, calls itself primary all the same, and its clients wait.

pub(crate) const MISTAKE: &str = "a node that has gone on alone gives way to leaders only (rule 11)";
