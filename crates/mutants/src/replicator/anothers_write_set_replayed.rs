//! A replay gets another transaction's write-set (server-contract.md#replay_trx).
//!
//! The victim's own changes are lost; the other transaction's changes are made twice.

pub(crate) const MISTAKE: &str =
    "a replay is given another transaction's write-set";
