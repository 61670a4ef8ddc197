//! The log keeps no more than `gcache.size`, whatever of it waits to be applied (rule 12).
//!
//! A node that lags behind by more cannot read back what it has to apply, and has to be restarted.

pub(crate) const MISTAKE: &str = "the log drops write-sets that wait to be applied (rule 12)";
