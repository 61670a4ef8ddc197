//! A member acknowledges its own suffix, of which the leader knows nothing (rule 1).
//!
//! After a takeover a member's log may go on above the point where it meets the new leader's.
//! Its acknowledgement up to its own end counts for what the leader puts there next, which the
//! member does not hold. What has been acknowledged with its help is in one log only.

pub(crate) const MISTAKE: &str =
    "a member acknowledges its own suffix, of which the leader knows nothing (rule 1)";
