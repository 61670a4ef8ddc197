//! A donor says that it is done before it has sent its lost rollback fragments again (rule 7).
//!
//! The joiner writes rows that the others still hold for a transaction of which it was not given all.

pub(crate) const MISTAKE: &str = "a donor is done before its rollbacks are sent (rule 7)";
