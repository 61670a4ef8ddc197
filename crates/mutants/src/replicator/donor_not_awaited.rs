//! A joiner takes a state from any member of the view, connected with it or not (decision 19).
//!
//! The order chooses a donor that died before this process began. The joiner's server can only end when the group removes
//! it.

pub(crate) const MISTAKE: &str = "a joiner does not wait for a connection to its possible donors";
