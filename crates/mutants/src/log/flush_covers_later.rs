//! A flush counts for what was appended while it ran, too.
//!
//! A power loss takes entries that were acknowledged and never flushed.

pub(crate) const MISTAKE: &str = "a flush counts for what was appended while it ran, too";
