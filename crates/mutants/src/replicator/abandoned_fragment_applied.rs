//! A fragment whose client was told of its failure is applied on its origin, too (rule 7).
//!
//! The origin has undone the transaction: the fragment begins another one, or finds none.

pub(crate) const MISTAKE: &str = "an abandoned fragment is applied on its origin (rule 7)";
