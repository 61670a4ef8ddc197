//! Writers do not hear that they may go on.
//!
//! They wait, without anybody asking for it, until the member that had asked is gone.

pub(crate) const MISTAKE: &str =
    "writers do not hear that they may go on";
