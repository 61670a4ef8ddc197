//! A total-order action counts as executed when only its begin is noted (rule 13).
//!
//! A process that was killed in the middle of it skips the action: its database lacks the action's changes.

pub(crate) const MISTAKE: &str =
    "a total-order action that has begun and not ended counts as executed (rule 13)";
