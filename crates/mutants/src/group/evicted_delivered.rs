//! Entries of an incarnation that is not in the view in force are delivered (rule 9).
//!
//! A member is paused and removed. Its write-set is delayed and ordered after the view that removed it, although its
//! origin has given it up. The mistake is planted in all four places that keep such a write-set out: where a
//! submission is received, ordered, delivered, and given a seqno.

pub(crate) const MISTAKE: &str =
    "entries of an incarnation that is not in the view in force are delivered (rule 9)";
