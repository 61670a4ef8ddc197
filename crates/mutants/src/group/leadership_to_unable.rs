//! The leader transfers leadership to an unfit member: desynced, forbidden by the operator, or with a log that lags.
//!
//! The commits of all members wait for the busiest one.

pub(crate) const MISTAKE: &str = "leadership is handed to a member that is not fit for it";
