//! A link is replaced by whoever names the same process, with any key.
//!
//! Whoever is admitted cuts a member off, and gets what is meant for it.

pub(crate) const MISTAKE: &str = "a link is replaced by whoever names the same process, with any key";
