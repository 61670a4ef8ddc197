//! A component takes back members of a fork, or yields to nobody, whatever overrides there were
//! (rule 11).
//!
//! `pc.bootstrap` made a part primary; the rest comes back as a majority of its own last view, and
//! the two histories meet under one uuid. Planted where heartbeats tell of overrides, and where a
//! member with another list of them would be given a checkpoint instead of being fed.

pub(crate) const MISTAKE: &str =
    "a component takes back members of a fork, or yields to nobody, whatever overrides there were (rule 11)";
