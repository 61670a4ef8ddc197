//! A forced view is built on its founder's log, although another promiser's log is better (rule 11).
//!
//! What the other one held is lost, although an operator has given up nothing that the connected nodes hold.

pub(crate) const MISTAKE: &str =
    "a forced view is built on its founder's log, not on the best of the promisers' (rule 11)";
