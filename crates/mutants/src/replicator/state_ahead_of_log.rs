//! A joiner goes on with a control state from beyond the end of its own log (rules 4, 5).
//!
//! It keeps that state beside its log, which then seems to prove entries that it does not have.

pub(crate) const MISTAKE: &str = "a joiner takes a control state that its own log does not reach";
