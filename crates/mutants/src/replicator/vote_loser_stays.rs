//! Who is outvoted does not leave (rule 22).
//!
//! Its database differs from the others' and goes on serving.

pub(crate) const MISTAKE: &str =
    "who is outvoted does not leave (rule 22)";
