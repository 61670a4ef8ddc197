//! A peer that is no member may send frames as long as a member's.
//!
//! Whoever reaches the port fills the memory of all nodes.

pub(crate) const MISTAKE: &str = "a stranger's frames may be as long as a member's";
