//! Each withdrawn submission is voided by itself (rule 9).
//!
//! The leader has the payloads of all, and hears of the first ones' withdrawal only: it orders the
//! others. A rollback fragment does not come, and what was written behind it does.

pub(crate) const MISTAKE: &str = "each withdrawn submission is voided by itself (rule 9)";
