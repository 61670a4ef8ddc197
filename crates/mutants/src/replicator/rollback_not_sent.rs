//! rollback() answers OK and sends nothing.
//!
//! The other nodes keep the transaction and its locks for ever.

pub(crate) const MISTAKE: &str = "rollback() of a streaming transaction sends nothing";
