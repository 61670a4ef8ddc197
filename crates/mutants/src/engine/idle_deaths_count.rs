//! A death counts against the next entry although the server was applying nothing.
//!
//! A node that is killed while it waits for other nodes does not start by itself again.

pub(crate) const MISTAKE: &str =
    "a death counts against what comes next although nothing was applied";
