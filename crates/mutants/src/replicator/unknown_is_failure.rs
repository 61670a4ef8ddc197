//! An unknown outcome is reported as a definite failure (rule 7).
//!
//! The client (or the server, which retries autocommit statements) runs the transaction again, and
//! the first one commits after all: applied twice.

pub(crate) const MISTAKE: &str = "an unknown outcome is reported as a definite failure (rule 7)";
