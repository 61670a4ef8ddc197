//! A bootstrapped node that begins its history anew does not know the overrides of its earlier log (rule 11).

pub(crate) const MISTAKE: &str =
    "a bootstrap knows the overrides of the database only, not those of the log (rule 11)";
