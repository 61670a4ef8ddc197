//! A node supports another founder although the earlier one may have founded.
//!
//! As with [`super::support_forgotten`], but without a restart.

pub(crate) const MISTAKE: &str =
    "a node supports a second founder although the first may have founded a cluster";
