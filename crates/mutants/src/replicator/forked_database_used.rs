//! A database beyond a fork point of its history gets an IST (rule 11).
//!
//! It keeps the dropped write-sets, under GTIDs that have other content elsewhere.

pub(crate) const MISTAKE: &str =
    "a database beyond a fork of its history is brought up to date by IST (rule 11)";
