//! Deaths of the server at one position are not counted.
//!
//! A write-set that kills the server is applied again at each start, for ever.

pub(crate) const MISTAKE: &str =
    "deaths of the server at one position are not counted";
