//! The log does not note that an entry failed certification (rule 16).
//!
//! A joiner that gets these entries by IST applies a write-set that failed everywhere else.

pub(crate) const MISTAKE: &str =
    "the log does not note that an entry failed certification (rule 16)";
