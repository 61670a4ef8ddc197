//! Callers that shake hands are not bounded.
//!
//! Silent ones take all descriptors of the server.

pub(crate) const MISTAKE: &str = "callers that shake hands are not bounded";
