//! A new leader keeps a submission that its origin has withdrawn (rule 7).
//!
//! The client was told that its transaction has certainly failed (CONN_FAIL: the server may run it again); afterwards
//! it commits.

pub(crate) const MISTAKE: &str = "a new leader keeps what its origin has withdrawn (rule 7)";
