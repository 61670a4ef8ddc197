//! What is delivered after entries whose payloads were left in the log at a restart does not wait until they are read.

pub(crate) const MISTAKE: &str =
    "later deliveries overtake those that are read from the log after a restart (rule 9)";
