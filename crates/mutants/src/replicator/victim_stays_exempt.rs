//! A victim that must be replayed does not end its origin's exemption, although its locks are gone (rule 9).
//!
//! Between its abort and its replay, other transactions on its node may write the same rows, and certification lets
//! them pass.

pub(crate) const MISTAKE: &str =
    "a victim that is to be replayed does not end its origin's exemption, although its locks are gone (rule 9)";
