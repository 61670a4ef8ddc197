//! A withdrawal is doubted because its origin may have forgotten what it acknowledged (rule 7).
//!
//! A process that connects again without its log may have forgotten entries, but not what it has withdrawn: that it never
//! held. A new leader that keeps it lets commit what the client was told has failed for certain.

pub(crate) const MISTAKE: &str =
    "a withdrawal is doubted because its origin may have forgotten what it acknowledged (rule 7)";
