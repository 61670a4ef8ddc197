//! A process that connects again has forgotten its withdrawals (rule 7).
//!
//! `SET GLOBAL wsrep_cluster_address` makes a new group, with a new incarnation. Another member's log may hold a
//! submission of the old incarnation whose client heard of a certain failure. It commits, because no promise lists
//! the withdrawal.

pub(crate) const MISTAKE: &str =
    "a process that connects again has forgotten what it has withdrawn (rule 7)";
