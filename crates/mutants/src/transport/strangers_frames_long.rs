//! A peer that is no member may send frames as long as a member's frames.
//!
//! Anyone who reaches the port can fill the memory of all nodes.

pub(crate) const MISTAKE: &str = "a stranger's frames may be as long as a member's";
