//! A fragment does not depend on the one before it.
//!
//! Appliers take it first if its keys are others: it finds no transaction, or is stored in the wrong order.

pub(crate) const MISTAKE: &str = "a fragment does not depend on the one before it";
