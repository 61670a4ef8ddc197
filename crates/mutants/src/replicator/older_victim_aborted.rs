//! A transaction ordered before its aborter is aborted all the same (server-contract.md#abort_certification).
//!
//! It would replay behind the write-set that was to wait for it, or both wait for each other.

pub(crate) const MISTAKE: &str =
    "a transaction ordered before its aborter is aborted all the same";
