//! Two overrides after a common past meet, and nobody says so (rule 11).
//!
//! Both sides stay primary and take writes for as long as nobody compares them. Planted where heartbeats tell of
//! overrides.

pub(crate) const MISTAKE: &str =
    "two components that overrides have made primary meet, and no operator is told (rule 11)";
