//! Deaths of the server count together, whatever its database's position was.
//!
//! A node that was killed three times, and made progress each time, does not start by itself again.

pub(crate) const MISTAKE: &str =
    "deaths of the server count wherever its database stood";
