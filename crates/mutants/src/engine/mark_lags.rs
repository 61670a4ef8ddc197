//! The mark outside the log's volume does not follow what is written and acknowledged (rule 4).
//!
//! A volume that loses what was acknowledged, and is mounted again within one boot, is not noticed.

pub(crate) const MISTAKE: &str =
    "the mark outside the log's volume does not follow what is written and acknowledged (rule 4)";
