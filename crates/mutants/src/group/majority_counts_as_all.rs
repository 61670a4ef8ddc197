//! A majority of amnesiac replicas goes on by itself, as if all voters were there (rule 4).
//!
//! A, B and C lose power. A and B are back; only C has kept an acknowledged commit. A and B go on without it.

pub(crate) const MISTAKE: &str =
    "a majority that may have forgotten goes on as if all voters were there (rule 4)";
