//! Two branches with different forced views meet, and no log says so (rule 11).
//!
//! Both sides stay primary and take writes until an operator compares them. Planted where heartbeats tell of forced
//! views.

pub(crate) const MISTAKE: &str =
    "two components that overrides have made primary meet, and no operator is told (rule 11)";
