//! A promise leaves before it is on disk, and is not there after a crash (rule 4).
//!
//! A member helps a new leader into its leadership, dies, comes back without knowing, and
//! acknowledges what the old leader orders: both have a majority of the same view. Planted where
//! the promise is sent (for the model check) and where it is written.

pub(crate) const MISTAKE: &str =
    "a promise leaves before it is on disk, and is not there after a crash (rule 4)";
