//! A member acknowledges its own suffix, which the leader does not know (rule 1).
//!
//! After a leader change a member's log may continue above the point where it agrees with the new leader's log. The
//! member's acknowledgement up to its own end counts for the leader's next entries there, which the member does not
//! hold. Entries acknowledged with its help are in one log only.

pub(crate) const MISTAKE: &str =
    "a member acknowledges its own suffix, of which the leader knows nothing (rule 1)";
