//! Every peer may connect, whatever the allowlist says.
//!
//! A foreign process reads the log.

pub(crate) const MISTAKE: &str =
    "everybody may connect, whatever the allowlist says";
