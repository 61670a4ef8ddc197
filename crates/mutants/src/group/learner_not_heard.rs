//! Where all members must be heard, a candidate does not wait for those without a vote (rule 4).
//!
//! A joiner has the best log. It goes on with it, and loses its connections. The voters go on without it.

pub(crate) const MISTAKE: &str = "where all members are to be heard, those without a vote are not waited for (rule 4)";
