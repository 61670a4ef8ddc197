//! A current read is answered when its read point is known, not when it is applied (rule 17).
//!
//! The read misses an acknowledged commit that its node has not applied.

pub(crate) const MISTAKE: &str =
    "a current read is answered when its point is known, not when it is applied (rule 17)";
