//! A forced view's fork point is what its founder knew to be committed, not what any of its members did (rule 11).
//!
//! A member whose database is beyond that point needs a snapshot, although nothing in it is lost.

pub(crate) const MISTAKE: &str =
    "a forced view forks where its founder's own commit point was, below that of another member (rule 11)";
