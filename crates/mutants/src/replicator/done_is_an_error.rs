//! A total-order action that is executed again after a crash, and was done already, counts as failed
//! (rule 13).
//!
//! The node leaves as inconsistent, or all later call the action failed that this database holds.

pub(crate) const MISTAKE: &str =
    "an action executed again after a crash fails because it was done already (rule 13)";
