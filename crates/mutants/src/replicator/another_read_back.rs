//! A write-set that waited without its payload gets another write-set's payload from the log.
//!
//! The database gets the rows of the wrong write-set.

pub(crate) const MISTAKE: &str =
    "a write-set that waited in the log only is applied with another's rows";
