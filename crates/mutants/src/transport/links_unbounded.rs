//! A node accepts any number of peers.
//!
//! The peers take the descriptors of the server.

pub(crate) const MISTAKE: &str =
    "a node takes any number of peers";
