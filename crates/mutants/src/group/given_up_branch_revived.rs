//! A node follows a yielding branch that it has given up before (rule 11).
//!
//! A node that joined that branch and was away meanwhile goes on with it, with the vote of the one that has given it up.
//! The commits that the majority has acknowledged are dropped.

pub(crate) const MISTAKE: &str = "a yielding branch that was given up is followed again (rule 11)";
