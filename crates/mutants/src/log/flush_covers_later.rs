//! A flush also counts for entries that were appended while it ran.
//!
//! A power loss takes entries that were acknowledged but never flushed.

pub(crate) const MISTAKE: &str = "a flush counts for what was appended while it ran, too";
