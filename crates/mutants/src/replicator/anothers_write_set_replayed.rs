//! A replay is given another transaction's write-set (server-contract.md#replay_trx).
//!
//! The victim's own changes are lost, another's are made twice.

pub(crate) const MISTAKE: &str =
    "a replay is given another transaction's write-set";
