//! A node with TLS takes peers without.
//!
//! What they say, and what they are told, can be read and changed on the way.

pub(crate) const MISTAKE: &str = "a node with TLS takes peers without";
