//! A node that reforms the cluster from the best log makes no forced view (rules 4, 11).
//!
//! A member with a better log, which was not heard, follows as if nothing had been dropped.

pub(crate) const MISTAKE: &str =
    "who goes on with the best that is left makes no override of it (rules 4, 11)";
