//! A leader of a ballot below the promised one is followed (rule 1).
//!
//! Whoever has promised a ballot must be lost for all lower ones; else the old leader and the
//! new one both find a majority.

pub(crate) const MISTAKE: &str =
    "a leader of a ballot below the promised one is followed (rule 1)";
