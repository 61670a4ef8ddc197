//! The winner of an election keeps a forced view in its log that the promises prove never made.
//!
//! Nothing commits any more without that view's members.

pub(crate) const MISTAKE: &str = "an elected leader keeps a forced view in its log that was begun and never made";
