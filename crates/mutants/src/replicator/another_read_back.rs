//! What is read back from the log for a write-set that waited without its payload is another's.
//!
//! The database gets the rows of the wrong write-set.

pub(crate) const MISTAKE: &str =
    "a write-set that waited in the log only is applied with another's rows";
