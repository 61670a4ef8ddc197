//! Entries of an older ballot commit by count, without one of the leader's own (rule 1).
//!
//! Raft's figure 8. An entry of ballot 1 reaches a majority in ballot 3, is committed by count, and
//! a member with one entry of ballot 2 outranks it in ballot 4: what was acknowledged is replaced.
//! Entries of older ballots commit only through one of the leader's own.

pub(crate) const MISTAKE: &str =
    "entries of an older ballot commit by count, without one of the leader's own (rule 1)";
