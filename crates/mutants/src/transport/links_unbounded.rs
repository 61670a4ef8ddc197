//! A node takes any number of peers.
//!
//! They take the descriptors of the server.

pub(crate) const MISTAKE: &str =
    "a node takes any number of peers";
