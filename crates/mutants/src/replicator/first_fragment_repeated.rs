//! Every fragment says that its transaction begins.
//!
//! The others begin a second transaction with it, or take it for a whole one.

pub(crate) const MISTAKE: &str = "every fragment says that its transaction begins";
