//! A leader with a pending forced view names itself leader to processes outside of that view.
//!
//! They follow it, although they have not elected it: they drop entries for it, and wait for it while they are a majority.

pub(crate) const MISTAKE: &str =
    "a leader whose forced view is pending leads processes outside of that view";
