//! A death counts against what comes next although nothing was applied.
//!
//! A node that is killed while it waits for others does not start by itself any more.

pub(crate) const MISTAKE: &str =
    "a death counts against what comes next although nothing was applied";
