//! Writers do not hear that a stop has ended.
//!
//! No member asks for the stop any more, but the writers wait until the member that had asked is gone.

pub(crate) const MISTAKE: &str =
    "writers do not hear that they may go on";
