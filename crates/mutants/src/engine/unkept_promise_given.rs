//! A member gives a promise although it could not write the promise (rule 4).
//!
//! The next process does not know of the promise, and gives the same one to another candidate.

pub(crate) const MISTAKE: &str =
    "a promise is given although it could not be written (rule 4)";
