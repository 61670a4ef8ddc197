//! Leadership moves without hysteresis: for any difference, at once, again and again.
//!
//! Nobody loses anything, but commits wait for a transfer of leadership all the time.

pub(crate) const MISTAKE: &str = "leadership moves without hysteresis";
