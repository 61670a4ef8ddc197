//! Where a majority may have forgotten, all that a log holds counts as known to be committed (rule 5).
//!
//! Its end may be of an older ballot than what a database holds under the same numbers.

pub(crate) const MISTAKE: &str =
    "the end of a log counts as known to be committed against a database (rule 5)";
