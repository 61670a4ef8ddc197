//! The leader removes a silent member as early as a member that is cut off stops being primary.
//!
//! A member that is cut off then serves while a view without it is in force.

pub(crate) const MISTAKE: &str = "a member that is cut off is removed before it stops being primary (rule 10)";
