//! A forced view is built on its founder's log, although another promiser's log is better (rule 11).
//!
//! The other one's entries are lost, although the operator has given up nothing that the connected nodes hold.

pub(crate) const MISTAKE: &str =
    "a forced view is built on its founder's log, not on the best of the promisers' (rule 11)";
