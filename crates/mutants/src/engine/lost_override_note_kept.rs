//! The note of an override stays when the log has dropped that override's entry (rule 11).
//!
//! The database goes on without the override. When the node meets the override's branch later, its database counts as
//! one of that branch, and takes missing entries on top of other rows.

pub(crate) const MISTAKE: &str =
    "the note of an override outlasts the override in the log (rule 11)";
