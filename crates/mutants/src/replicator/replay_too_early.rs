//! A replay begins before all that were ordered earlier have committed (server-contract.md#replay_trx).
//!
//! The replay takes locks that a write-set ordered before it needs: two brute-force threads in
//! conflict.

pub(crate) const MISTAKE: &str =
    "a replay begins before all that were ordered earlier have committed";
