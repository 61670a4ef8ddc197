//! The control state for a restart or a joiner lacks the open error votes. Such a node counts fewer ballots than the
//! others, decides later or differently, and counts itself as diverged.

pub(crate) const MISTAKE: &str = "the kept or sent control state is without the votes that are open";
