//! A candidate trusts the promise of a process that has gone on without this branch's forced view.
//!
//! The committed entries of that process lie at other positions, and its view in force is another one. So the
//! candidate looks for a majority of the wrong view, in vain or, worse, with success. Planted where promises are
//! received.

pub(crate) const MISTAKE: &str =
    "a log of another branch says what is committed, and under which view, in an election (rule 11)";
