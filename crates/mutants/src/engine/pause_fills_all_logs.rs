//! A log keeps what another member has not applied, though that one's own log has it (rule 12).
//!
//! One database that is paused or slow fills everybody's disk.

pub(crate) const MISTAKE: &str =
    "all logs keep what waits to be applied at one member, which holds it itself (rule 12)";
