//! Every fragment is marked as the first one of its transaction.
//!
//! The other nodes begin a second transaction with it, or treat it as a whole transaction.

pub(crate) const MISTAKE: &str = "every fragment says that its transaction begins";
