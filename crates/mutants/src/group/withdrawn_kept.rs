//! A new leader keeps what its origin has withdrawn (rule 7).
//!
//! The client was told that its transaction has failed for certain (CONN_FAIL: the server may run
//! it again); afterwards it commits.

pub(crate) const MISTAKE: &str = "a new leader keeps what its origin has withdrawn (rule 7)";
