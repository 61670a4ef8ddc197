//! Entries of an incarnation that is not in the view in force are delivered (rule 9).
//!
//! A member is paused, removed, and its write-set, held up on the way, is ordered after the view
//! that removed it. Its origin has given it up. Planted in all four places that keep it out: where a
//! submission is taken in, ordered, delivered, and given a seqno.

pub(crate) const MISTAKE: &str =
    "entries of an incarnation that is not in the view in force are delivered (rule 9)";
