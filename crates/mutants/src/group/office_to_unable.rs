//! Leadership is handed to a member that is not fit for it: desynced, forbidden by the operator, or with a
//! log that lags.
//!
//! Everybody's commits wait for whoever is busiest with other things.

pub(crate) const MISTAKE: &str = "leadership is handed to a member that is not fit for it";
