//! last_seen is the last ordered seqno, not the last visible one (certification).
//!
//! A transaction claims to have seen write-sets that still wait to be applied on its node. Certification does not
//! find the conflict: a lost update.

pub(crate) const MISTAKE: &str =
    "last_seen is what was ordered, not what is visible here (certification)";
