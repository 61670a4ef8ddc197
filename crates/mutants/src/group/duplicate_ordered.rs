//! A submission is ordered again after a takeover (rule 9).
//!
//! The origin sends its submission to the new leader, which has taken over the old one's order
//! record as well: the write-set is applied twice.

pub(crate) const MISTAKE: &str = "a submission is ordered again after a takeover (rule 9)";
