//! A transaction is aborted although it was ordered before its aborter (server-contract.md#abort_certification).
//!
//! It would replay behind the write-set that must wait for it, or both wait for each other.

pub(crate) const MISTAKE: &str =
    "a transaction ordered before its aborter is aborted all the same";
