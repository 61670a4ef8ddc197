//! A log keeps entries that another member has not applied, although that member's own log holds them (rule 12).
//!
//! One paused or slow database fills the disks of all members.

pub(crate) const MISTAKE: &str =
    "all logs keep what waits to be applied at one member, which holds it itself (rule 12)";
