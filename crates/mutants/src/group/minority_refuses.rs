//! A leader without a majority refuses a member that comes back with a forced view unknown to the leader (rule 11).
//!
//! The operator obeys the refusal and moves that node's data away. This removes the branch to which the others had to
//! yield.

pub(crate) const MISTAKE: &str =
    "a leader without a majority refuses who knows an override that it does not (rule 11)";
