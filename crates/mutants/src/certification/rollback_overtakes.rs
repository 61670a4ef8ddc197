//! A rollback fragment does not wait for the fragments of its transaction.
//!
//! It has no keys by which it would depend on them: appliers take it while one is under way, and undo the
//! transaction below it.

pub(crate) const MISTAKE: &str = "a rollback fragment does not wait for the fragments before it";
