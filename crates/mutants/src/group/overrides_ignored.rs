//! A component ignores forced views: it takes back members of another branch, and never yields (rule 11).
//!
//! `pc.bootstrap` made a part primary. The other nodes come back as a majority of their own last view, and the two
//! histories meet under one uuid. Planted where heartbeats tell of forced views, and where a member with another list
//! of them would get a log checkpoint instead of entries.

pub(crate) const MISTAKE: &str =
    "a component takes back members of a fork, or yields to nobody, whatever overrides there were (rule 11)";
