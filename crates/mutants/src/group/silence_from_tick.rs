//! A leader counts the silence of its majority from its own last look at the clock, not from the majority's last word.
//!
//! A leader that is cut off then serves for up to twice `evs.suspect_timeout`, beside a view without it.

pub(crate) const MISTAKE: &str = "a leader counts the silence of its majority from its last tick on (rule 10)";
