//! A replica with lost views vouches for the views in its log (rule 4).
//!
//! Voters of a view that no member here knows have acknowledged the lost entries.

pub(crate) const MISTAKE: &str =
    "who may have lost views vouches for which views there are (rule 4)";
