//! A leader proposes a view while another one is pending (rule 3).
//!
//! One step may remove or add as many votes as two neighbouring majorities allow; two steps at once are too many.
//! Planted together with the two guards behind it: the next proposal builds on the last one in the log, and entries
//! need only the newest view's majority.

pub(crate) const MISTAKE: &str = "a view is proposed while another one is uncommitted (rule 3)";
