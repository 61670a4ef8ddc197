//! A new connection of a process does not write down the promise that an earlier one could not write (rule 4).
//!
//! Without a promise on its disk the node acknowledges nothing, until a later term makes it promise anew.

pub(crate) const MISTAKE: &str =
    "a reconnected node does not write down the promise that it could not write before (rule 4)";
