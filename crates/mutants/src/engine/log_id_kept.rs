//! A log keeps its id for ever.
//!
//! A copy of the log's files that was made long ago counts as the log with which this replica acknowledged last.

pub(crate) const MISTAKE: &str = "an old copy of the log that is put back counts as the log";
