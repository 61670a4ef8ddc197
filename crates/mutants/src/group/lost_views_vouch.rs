//! A member whose log may miss views vouches for those that it has (rule 4).
//!
//! Voters of a view that nobody here knows any more have acknowledged what is lost.

pub(crate) const MISTAKE: &str =
    "who may have lost views vouches for which views there are (rule 4)";
