//! A candidate takes the promise of a process that has gone on without this branch's override for what it is.
//!
//! What that one knows to be committed lies at other positions, and the view in force there is another one: the
//! candidate looks for a majority of the wrong view, in vain or, worse, not. Planted where promises are taken.

pub(crate) const MISTAKE: &str =
    "a log of another branch says what is committed, and under which view, in an election (rule 11)";
