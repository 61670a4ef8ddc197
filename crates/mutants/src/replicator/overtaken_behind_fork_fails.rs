//! A streaming commit that waits for its fate fails for certain on a forced view's branch (rules 7 and 11).
//!
//! That branch orders something later of the same origin. The branch that the forced view left may have the commit.

pub(crate) const MISTAKE: &str =
    "what a forced view's branch has not ordered counts as not committed at all (rules 7, 11)";
