//! A forced view counts as not committed if half of the members of the view before lack it (rules 3 and 11).

pub(crate) const MISTAKE: &str =
    "a forced view counts as committed only with a majority of the view before (rules 3, 11)";
