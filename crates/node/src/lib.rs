//! What every member of a cluster consists of, with a server above it or without.
//!
//! [`options`] are the provider options that users know, [`url`] the cluster address, [`votes`] the
//! file of what a replica has promised.

pub mod options;
pub mod url;
pub mod votes;
