//! A member sends a promise before the promise is on disk, and loses it in a crash (rule 4).
//!
//! A member helps to elect a new leader, dies, and comes back without its promise. Then it acknowledges entries of
//! the old leader: both leaders have a majority of the same view. Planted where the promise is sent (for the model
//! check) and where it is written.

pub(crate) const MISTAKE: &str =
    "a promise leaves before it is on disk, and is not there after a crash (rule 4)";
