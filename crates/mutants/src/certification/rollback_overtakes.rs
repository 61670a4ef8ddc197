//! A rollback fragment does not wait for the fragments of its transaction.
//!
//! The rollback fragment has no keys and so no dependency on the others. An applier takes it while another fragment
//! is being applied, and undoes the transaction.

pub(crate) const MISTAKE: &str = "a rollback fragment does not wait for the fragments before it";
