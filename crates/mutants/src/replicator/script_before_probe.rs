//! A joiner that lacks the first entry of its IST asks nobody for it before the server gets its script.
//!
//! Where no member has it any more the server, which can take no snapshot now, starts again, for ever.

pub(crate) const MISTAKE: &str =
    "nobody is asked for the first entry of an IST before the server gets its script";
