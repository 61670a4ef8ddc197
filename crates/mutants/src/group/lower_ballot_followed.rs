//! A sequencer of a ballot below the promised one is followed (rule 1).
//!
//! Whoever has promised a ballot must be lost for all lower ones; else the old sequencer and the
//! new one both find a majority.

pub(crate) const MISTAKE: &str =
    "a sequencer of a ballot below the promised one is followed (rule 1)";
