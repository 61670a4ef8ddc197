//! A view is proposed while another one is uncommitted (rule 3).
//!
//! Each step may take away or add as many votes as two neighbouring majorities bear; two steps at
//! once are one too many. Planted with the two guards behind it: the next proposal builds on the
//! last one in the log, and entries need the newest view's majority only.

pub(crate) const MISTAKE: &str = "a view is proposed while another one is uncommitted (rule 3)";
