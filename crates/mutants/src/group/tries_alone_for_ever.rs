//! A node repeats a vain attempt to go on alone, without end, and stays primary meanwhile (rule 11).
//!
//! A member with a longer log leads for it, and may not. The node orders nothing, and its clients wait.

pub(crate) const MISTAKE: &str = "a vain attempt to go on alone is repeated without end (rule 11)";
