//! Deaths of the server count wherever its database stood.
//!
//! A node that was killed three times, and got on each time, does not start by itself any more.

pub(crate) const MISTAKE: &str =
    "deaths of the server count wherever its database stood";
