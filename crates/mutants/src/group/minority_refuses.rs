//! A leader without a majority refuses whoever comes back with an override that it does not know (rule 11).
//!
//! The operator does what the refusal says and moves that node's data away, and with it the branch that the others were to
//! give way to.

pub(crate) const MISTAKE: &str =
    "a leader without a majority refuses who knows an override that it does not (rule 11)";
