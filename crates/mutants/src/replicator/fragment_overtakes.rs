//! A fragment does not depend on the one before it.
//!
//! If its keys are others, two appliers take the two at once, and use one session of the server's: rows of
//! either are lost, or stored in the wrong order.

pub(crate) const MISTAKE: &str = "a fragment does not depend on the one before it";
