//! A log that ends with a pending forced view leads, although it lacks entries that are known to be committed (rule 11).
//!
//! Its last term is greater than those of the others: that term needed no majority. The others refuse its entries, and
//! nobody serves.

pub(crate) const MISTAKE: &str =
    "a pending forced view outranks what is known to be committed (rule 11)";
