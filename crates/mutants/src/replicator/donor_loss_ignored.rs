//! A joiner goes on waiting for a donor that has left (server-contract-traps.md#donor-lost).
//!
//! It would wait for ever: nobody sends, and nobody says so.

pub(crate) const MISTAKE: &str =
    "a joiner goes on waiting for a donor that has left";
