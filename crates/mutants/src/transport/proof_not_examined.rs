//! The signature of a Hello is not checked.
//!
//! An admitted process repeats a Hello that it has heard from another member, and counts as that member.

pub(crate) const MISTAKE: &str = "the signature of a Hello is not looked at";
