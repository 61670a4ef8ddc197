//! The first entry behind a snapshot is left out (rule 19).
//!
//! What it wrote is missing in the joiner's database for good.

pub(crate) const MISTAKE: &str =
    "the first entry behind a snapshot is left out (rule 19)";
