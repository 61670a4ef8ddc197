//! A database that cannot be compared with any log counts as none (rules 4, 5).
//!
//! What it alone holds is given up, and its numbers are given out again.

pub(crate) const MISTAKE: &str =
    "a database that cannot be compared with its log counts as none (rules 4, 5)";
