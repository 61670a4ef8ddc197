//! An arbitrator drops the entries that the databases may not have flushed (rule 12).
//!
//! The data nodes lose power, with the ends of their logs and the last commits of their databases. The arbitrator's log
//! has committed the most, but no longer the entries from which a database could be brought to its end.

pub(crate) const MISTAKE: &str =
    "an arbitrator drops what the databases may not have flushed (rule 12)";
