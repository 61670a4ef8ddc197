//! Where all may have forgotten, the best log leads, whatever the databases hold (rule 5).
//!
//! All lose power. The database of A has flushed what no log has kept: its numbers get other content.

pub(crate) const MISTAKE: &str =
    "where all may have forgotten, the best log leads although a database is ahead of it (rule 5)";
