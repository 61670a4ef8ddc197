//! A flow-control stop holds until its member withdraws it (rule 15).
//!
//! A node asks for a stop and is paused or cut off: all members wait for it until it is removed.

pub(crate) const MISTAKE: &str = "a flow-control stop holds until it is withdrawn (rule 15)";
