//! Entries of an older term commit by count, without an entry of the leader's own term (rule 1).
//!
//! Raft's figure 8: an entry of term 1 reaches a majority in term 3 and is committed by count. A member with one
//! entry of term 2 outranks it in term 4: an acknowledged entry is replaced. Entries of older terms may commit only
//! through an entry of the leader's own term.

pub(crate) const MISTAKE: &str =
    "entries of an older term commit by count, without one of the leader's own (rule 1)";
