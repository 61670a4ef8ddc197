//! A process takes what an earlier one wrote for flushed when a flush succeeds (rule 4).
//!
//! The earlier one's flush had failed: the operating system shows the entries, and does not write them any more.

pub(crate) const MISTAKE: &str =
    "after a failed flush the next process counts as flushed what is only cached (rule 4)";
