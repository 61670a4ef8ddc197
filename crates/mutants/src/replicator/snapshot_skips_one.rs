//! The first entry after an SST is left out (rule 19).
//!
//! Its changes are missing in the joiner's database for good.

pub(crate) const MISTAKE: &str =
    "the first entry behind a snapshot is left out (rule 19)";
