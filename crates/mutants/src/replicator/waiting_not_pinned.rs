//! The log keeps at most `gcache.size`, even of entries that wait to be applied (rule 12).
//!
//! A node that lags by more cannot read its unapplied entries back, and must be restarted.

pub(crate) const MISTAKE: &str = "the log drops write-sets that wait to be applied (rule 12)";
