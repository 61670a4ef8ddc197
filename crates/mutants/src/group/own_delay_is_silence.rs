//! A candidate for a forced view counts the wait for promises from its decision on (rule 11).
//!
//! While its own disk writes the promise, nobody else is asked. Then it goes on without members that hold longer logs.

pub(crate) const MISTAKE: &str =
    "a candidate for a forced view takes its own slow disk for the silence of the others (rule 11)";
