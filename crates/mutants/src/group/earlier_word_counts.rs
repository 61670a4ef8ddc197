//! A process gives way to a peer that was primary without its forced views before this log got them.
//!
//! The peer has followed them since, and a cut link hides that. The process leaves a component to which both belong.

pub(crate) const MISTAKE: &str =
    "a peer's word from before this log had its forced views makes them give way (rule 11)";
