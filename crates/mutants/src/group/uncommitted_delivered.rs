//! A member delivers appended entries before they are committed (rules 1, 6).
//!
//! A leader change may still replace the end of a log, but an applied entry cannot be undone.

pub(crate) const MISTAKE: &str =
    "a member delivers what it has appended, committed or not (rules 1, 6)";
