//! When all replicas may be amnesiac, the best log leads, whatever the databases hold (rule 5).
//!
//! All lose power. The database of A has flushed write-sets that no log has kept: their seqnos get other content.

pub(crate) const MISTAKE: &str =
    "where all may have forgotten, the best log leads although a database is ahead of it (rule 5)";
