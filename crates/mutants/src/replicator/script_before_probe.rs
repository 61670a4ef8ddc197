//! A joiner that lacks the first entry of its IST asks no member for it before the server gets its script.
//!
//! If no member has the entry, the server, which cannot take an SST now, starts again and again, for ever.

pub(crate) const MISTAKE: &str =
    "nobody is asked for the first entry of an IST before the server gets its script";
