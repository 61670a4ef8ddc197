//! Leadership moves without hysteresis: for any difference, at once, again and again.
//!
//! Nobody loses anything by it, but commits wait for a hand-over all the time.

pub(crate) const MISTAKE: &str = "leadership moves without hysteresis";
