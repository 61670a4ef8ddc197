//! The notes beside a log that is known to be an older one count as the last notes on the database (rule 11).
//!
//! The database may have gone another way since, on a branch of its own that these notes do not name.

pub(crate) const MISTAKE: &str = "a database is judged by the notes beside an older log (rule 11)";
