//! A candidate that lacks intact voters of a pending view only does not go on by evidence (rule 4).

pub(crate) const MISTAKE: &str = "half of the votes intact in the last committed view forbid to go on by evidence, although a pending view lacks them (rule 4)";
