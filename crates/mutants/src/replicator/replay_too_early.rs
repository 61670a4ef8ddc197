//! A replay begins before all that were ordered earlier have committed (contract 2.10).
//!
//! The replay takes locks that a write-set ordered before it needs: two brute-force threads in
//! conflict.

pub(crate) const MISTAKE: &str =
    "a replay begins before all that were ordered earlier have committed (contract 2.10)";
