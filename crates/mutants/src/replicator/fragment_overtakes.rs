//! A fragment does not depend on the one before it.
//!
//! If its keys differ, two appliers take the two fragments at once and use one session of the server: rows of a
//! fragment are lost, or stored in the wrong order.

pub(crate) const MISTAKE: &str = "a fragment does not depend on the one before it";
