//! A node does not end its desync.
//!
//! It stays Donor/Desynced for ever, without flow control, and no donor is left.

pub(crate) const MISTAKE: &str =
    "a node does not take its desyncs back";
