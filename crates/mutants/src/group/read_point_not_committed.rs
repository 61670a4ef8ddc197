//! A reader gets a read point that is not committed (rule 17).
//!
//! The log ends of a majority may lie in a suffix that is in few logs. If the next leader does not have the suffix,
//! the order may not reach that position for long. Then the read waits until its timeout, although all commits that
//! it must see are applied.

pub(crate) const MISTAKE: &str = "a reader is told of a position that is not committed (rule 17)";
