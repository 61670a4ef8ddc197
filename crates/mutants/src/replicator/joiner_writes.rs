//! Write-sets of a member that has not joined count (rule 9).
//!
//! A node that has just got a log checkpoint takes its own write-set into its order before the entries that its
//! database lacks. The order has a gap, and the client has committed on an old state. In a member that is in step and
//! only has to say so again, the mistake changes nothing.

pub(crate) const MISTAKE: &str = "write-sets of a member that has not joined count (rule 9)";
