//! Write-sets of a member that has not joined count (rule 9).
//!
//! A node that has just been given a checkpoint takes its own write-set into its order before the entries
//! that its database lacks: the order has a gap, and the client has committed on a state that was passed.
//! In a member that is in step already, and only has to say so again, the mistake changes nothing.

pub(crate) const MISTAKE: &str = "write-sets of a member that has not joined count (rule 9)";
