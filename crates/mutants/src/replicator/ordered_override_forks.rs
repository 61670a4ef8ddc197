//! An override that was ordered, and never made, counts as one in the database's past (rule 11).
//!
//! Its note says that the fork is not known: the database has nothing of that branch.

pub(crate) const MISTAKE: &str =
    "a database counts as forked by an override that was ordered and never made (rule 11)";
