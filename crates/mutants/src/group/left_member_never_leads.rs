//! A process without a seat in the last view refuses to lead, whatever its log has (rule 4).
//!
//! The members of that view have lost the ends of their logs. They wait for ever, although the best log is here.

pub(crate) const MISTAKE: &str =
    "the owner of the best log refuses to lead, because it has left (rule 4)";
