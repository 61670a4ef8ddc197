//! Abandoning a write-set does not end its origin's exemption (rule 9).
//!
//! The abandoned write-set holds no locks at its origin; the next transaction there overwrites it unseen.

pub(crate) const MISTAKE: &str =
    "abandoning a write-set does not end its origin's exemption (rule 9)";
