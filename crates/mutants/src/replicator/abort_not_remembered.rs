//! A victim in certify does not hear that it was aborted (lost wake-up).
//!
//! The applier waits for the victim's row locks, and the victim waits for its turn behind the applier: the node
//! stands still.

pub(crate) const MISTAKE: &str =
    "a victim in certify is not told that it was aborted (lost wake-up)";
