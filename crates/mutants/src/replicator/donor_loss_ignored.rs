//! A joiner still waits for a donor that has left (server-contract-traps.md#donor-lost).
//!
//! It waits for ever: no member sends, and no member says so.

pub(crate) const MISTAKE: &str =
    "a joiner goes on waiting for a donor that has left";
