//! The last fragment's client is told at once that nobody knows what became of it (rule 7).
//!
//! It rolls back; committed after all, the fragment lacks the others on its origin.

pub(crate) const MISTAKE: &str = "a streaming commit of unknown fate is not waited for (rule 7)";
