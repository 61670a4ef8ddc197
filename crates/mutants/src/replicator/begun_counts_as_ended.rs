//! A total-order action that was noted to have begun counts as executed (rule 13).
//!
//! A process that was killed within it passes over it: its database lacks what the action did.

pub(crate) const MISTAKE: &str =
    "a total-order action that has begun and not ended counts as executed (rule 13)";
