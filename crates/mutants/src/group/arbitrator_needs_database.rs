//! An arbitrator that is alone in its view, and has forgotten, waits for a voter with a database (rule 4).
//!
//! There is none. The data nodes have left that view, and wait for the arbitrator.

pub(crate) const MISTAKE: &str =
    "an arbitrator alone waits for the database of a voter (rule 4)";
