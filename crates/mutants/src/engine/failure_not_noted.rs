//! A failed write, flush or promise is noted nowhere.
//!
//! The volume has dropped what was acknowledged; the member counts as intact when it is mounted again (rule 4).

pub(crate) const MISTAKE: &str =
    "a failed write, flush or promise is noted nowhere";
