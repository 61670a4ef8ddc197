//! The sequencer keeps its office although its disk does not answer.
//!
//! What it must keep itself, a promise or the state beside the log, holds up everybody.

pub(crate) const MISTAKE: &str =
    "the sequencer keeps its office although its disk does not answer";
