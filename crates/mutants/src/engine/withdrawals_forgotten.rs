//! A process that connects again has forgotten what it has withdrawn (rule 7).
//!
//! `SET GLOBAL wsrep_cluster_address` makes a new group, under a new name. What the clients of the old one were told has failed
//! for certain may be in another member's log: it commits, since nobody's promise says that it is withdrawn.

pub(crate) const MISTAKE: &str =
    "a process that connects again has forgotten what it has withdrawn (rule 7)";
