//! Members do not believe a withdrawal of an amnesiac origin (rule 7).
//!
//! A process that connects again without its log may have forgotten entries, but not its withdrawals: the log never
//! held them. If a new leader keeps such a submission, it commits although the client was told of a certain failure.

pub(crate) const MISTAKE: &str =
    "a withdrawal is doubted because its origin may have forgotten what it acknowledged (rule 7)";
