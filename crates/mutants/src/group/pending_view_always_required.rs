//! An election needs a pending view's voters although a majority says that it has not acknowledged that view (rule 3).

pub(crate) const MISTAKE: &str =
    "an election needs the voters of a pending view that cannot have been committed (rule 3)";
