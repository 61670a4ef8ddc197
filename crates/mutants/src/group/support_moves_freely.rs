//! A node supports another founder although the one before may have founded.
//!
//! As with [`super::support_forgotten`], without any restart of its own.

pub(crate) const MISTAKE: &str =
    "a node supports a second founder although the first may have founded a cluster";
