//! A current read is answered when its point is known, not when it is applied (rule 17).
//!
//! The read looks at rows that an acknowledged commit has changed and its node has not applied.

pub(crate) const MISTAKE: &str =
    "a current read is answered when its point is known, not when it is applied (rule 17)";
