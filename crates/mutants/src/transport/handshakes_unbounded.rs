//! The number of callers in a handshake is not limited.
//!
//! Silent callers take all descriptors of the server.

pub(crate) const MISTAKE: &str = "callers that shake hands are not bounded";
