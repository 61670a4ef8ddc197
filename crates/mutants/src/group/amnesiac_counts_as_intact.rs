//! A restarted member's promise counts as if it had its log (rule 4).
//!
//! An entry in the logs of A and B is committed. B's process dies and comes back with an empty log; A dies. B and C
//! promise and are a majority, but do not know the entry.

pub(crate) const MISTAKE: &str =
    "a restarted member's promise counts as if it had its log (rule 4)";
