//! Everybody may connect, whatever the allowlist says.
//!
//! A stranger reads the log.

pub(crate) const MISTAKE: &str =
    "everybody may connect, whatever the allowlist says";
