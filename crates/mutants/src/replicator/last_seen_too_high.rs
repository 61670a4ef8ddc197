//! Last_seen is what was ordered, not what is visible here (certification).
//!
//! A transaction claims to have seen what waits to be applied on its node; the conflict is not
//! found: a lost update.

pub(crate) const MISTAKE: &str =
    "last_seen is what was ordered, not what is visible here (certification)";
