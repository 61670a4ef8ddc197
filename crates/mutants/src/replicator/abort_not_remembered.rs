//! A victim in certify is not told that it was aborted (lost wake-up).
//!
//! The applier waits for the victim's row locks, the victim for its turn behind the applier: the
//! node stands still.

pub(crate) const MISTAKE: &str =
    "a victim in certify is not told that it was aborted (lost wake-up)";
