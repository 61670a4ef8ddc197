//! The log flushes itself before it removes an old segment (`repl.durability=disk`).
//!
//! While a flush of it hangs, the whole node waits: it sends no heartbeat, and does not transfer leadership.

pub(crate) const MISTAKE: &str =
    "the removal of an old segment waits for a flush, even for one that hangs";
