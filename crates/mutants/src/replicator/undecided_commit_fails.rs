//! The client of the last fragment is told at once that its outcome is unknown (rule 7).
//!
//! The server rolls back. If the fragment is committed after all, its origin lacks the other fragments.

pub(crate) const MISTAKE: &str = "a streaming commit of unknown fate is not waited for (rule 7)";
