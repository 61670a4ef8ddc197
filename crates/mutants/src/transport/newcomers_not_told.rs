//! Members do not tell newcomers of each other.
//!
//! A cluster stays in parts that only know their seeds.

pub(crate) const MISTAKE: &str =
    "members are not told of each other";
