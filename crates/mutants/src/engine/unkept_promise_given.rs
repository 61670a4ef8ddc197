//! A promise is given although it could not be written (rule 4).
//!
//! The next process knows nothing of it, and promises another candidate the same.

pub(crate) const MISTAKE: &str =
    "a promise is given although it could not be written (rule 4)";
