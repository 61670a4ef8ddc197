//! A node that has given way counts as a member again as soon as a view lists it, without a vote (rule 11).
//!
//! It has not got the majority's log yet. If it hears no primary any more, it takes its branch up again, and the
//! majority follows it: acknowledged commits are dropped.

pub(crate) const MISTAKE: &str = "a seat without a vote counts as a return from a yielding branch (rule 11)";
