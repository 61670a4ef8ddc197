//! A member that loses an error vote does not leave (rule 22).
//!
//! Its database differs from the others', and it still serves.

pub(crate) const MISTAKE: &str =
    "who is outvoted does not leave (rule 22)";
