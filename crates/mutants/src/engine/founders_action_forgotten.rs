//! A bootstrapped node counts as being at an action above its database's position, and forgets it at the next start
//! (rule 13).

pub(crate) const MISTAKE: &str = "a bootstrapped node that dies at once forgets that its database counts as being at an action (rule 13)";
