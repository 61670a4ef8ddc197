//! A replay begins before all earlier seqnos have committed (server-contract.md#replay_trx).
//!
//! The replay takes locks that an earlier write-set needs: two brute-force threads in conflict.

pub(crate) const MISTAKE: &str =
    "a replay begins before all that were ordered earlier have committed";
