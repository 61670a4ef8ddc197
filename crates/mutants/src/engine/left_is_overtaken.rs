//! A later delivery does not wait for earlier entries whose payloads a restart left in the log, to be read later.

pub(crate) const MISTAKE: &str =
    "later deliveries overtake those that are read from the log after a restart (rule 9)";
