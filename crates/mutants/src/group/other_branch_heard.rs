//! A leader counts members that follow another branch as its majority (rules 3 and 11).
//!
//! It can commit nothing and stays primary: its clients wait.

pub(crate) const MISTAKE: &str = "members of another branch count as the leader's majority (rule 11)";
