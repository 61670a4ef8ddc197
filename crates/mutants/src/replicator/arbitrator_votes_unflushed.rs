//! An arbitrator has its vote before the databases have flushed what came before its log (rules 4 and 12).

pub(crate) const MISTAKE: &str =
    "an arbitrator votes before the databases have flushed what its log lacks (rules 4, 12)";
