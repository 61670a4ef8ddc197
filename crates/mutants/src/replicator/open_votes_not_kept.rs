//! Votes that are open are not in the control state that a restart goes on with, or a joiner gets: such a node counts
//! fewer ballots than the others, decides later or differently, and holds itself for diverged.

pub(crate) const MISTAKE: &str = "the kept or sent control state is without the votes that are open";
