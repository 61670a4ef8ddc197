//! The mark outside the log's volume does not follow writes and acknowledgements (rule 4).
//!
//! Nobody notices a volume that loses acknowledged entries and is mounted again within one boot.

pub(crate) const MISTAKE: &str =
    "the mark outside the log's volume does not follow what is written and acknowledged (rule 4)";
