//! A current read needs the log ends of all voters, not of a majority (rule 17).
//!
//! One link that is down, while both its ends stay members, holds up all current reads there.

pub(crate) const MISTAKE: &str = "a current read needs the log ends of all voters (rule 17)";
