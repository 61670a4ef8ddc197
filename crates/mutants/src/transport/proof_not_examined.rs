//! The signature of a Hello is not looked at.
//!
//! Whoever is admitted repeats a Hello that it has heard from another, and is taken for that one.

pub(crate) const MISTAKE: &str = "the signature of a Hello is not looked at";
