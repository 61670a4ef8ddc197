//! A total-order action that was done before a crash, and is executed again, counts as failed (rule 13).
//!
//! Either the node leaves as inconsistent, or all nodes later count as failed an action that this database holds.

pub(crate) const MISTAKE: &str =
    "an action executed again after a crash fails because it was done already (rule 13)";
