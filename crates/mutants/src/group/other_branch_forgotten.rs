//! A submission from before a forced view fails for certain (rule 7), although the branch that the forced view left may
//! have committed it (rule 11).
//!
//! The client was told that its transaction has certainly failed (CONN_FAIL: the server may run it again). The majority
//! commits it, this node gives way to that majority, and the transaction is done twice.

pub(crate) const MISTAKE: &str = "a submission from before a forced view fails for certain (rule 7)";
