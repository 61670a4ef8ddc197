//! After a successful flush, a process counts the writes of an earlier process as flushed (rule 4).
//!
//! The earlier process had a failed flush: the operating system still shows the entries, but no longer writes them.

pub(crate) const MISTAKE: &str =
    "after a failed flush the next process counts as flushed what is only cached (rule 4)";
