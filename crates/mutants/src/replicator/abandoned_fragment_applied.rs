//! A fragment whose client was told that it failed is applied on its origin, too (rule 7).
//!
//! There the transaction has been undone: the fragment begins another, or finds none.

pub(crate) const MISTAKE: &str = "an abandoned fragment is applied on its origin (rule 7)";
