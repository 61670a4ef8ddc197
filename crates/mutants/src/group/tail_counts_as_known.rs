//! In a majority of amnesiac replicas, all entries of a log count as known to be committed (rule 5).
//!
//! The end of the log may be of an older term than the content of a database under the same seqnos.

pub(crate) const MISTAKE: &str =
    "the end of a log counts as known to be committed against a database (rule 5)";
