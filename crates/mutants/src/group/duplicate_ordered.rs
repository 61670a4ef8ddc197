//! A new leader orders a submission that the old leader had ordered (rule 9).
//!
//! The origin sends its submission to the new leader, which has taken over the old leader's order record, too: the
//! write-set is applied twice.

pub(crate) const MISTAKE: &str = "a submission is ordered again after a takeover (rule 9)";
