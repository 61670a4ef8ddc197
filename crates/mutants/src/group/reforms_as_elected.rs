//! Who goes on with the best log that is left does so without an override (rules 4, 11).
//!
//! A member that was not heard, and has more, follows as if nothing had been dropped.

pub(crate) const MISTAKE: &str =
    "who goes on with the best that is left makes no override of it (rules 4, 11)";
