//! The encryption of a cluster, for its operator: the work of `trireme tls` and `trireme secret`.
//!
//! [`Store`] is an operator's directory with the authority's key and the files of each node; it makes and renews them.
//! [`check_files`] checks the files of a node, [`check_peer`] the certificate of a running member, [`crl_days_left`] the
//! end of revocation lists. [`change_over`] takes a live cluster from plaintext to TLS through SQL. [`Secret`] writes
//! the file of a shared secret.
//!
//! The provider uses none of this. An operator who makes certificates in another way does not need it.

#![forbid(unsafe_code)]

mod authority;
mod certificate;
mod change_over;
mod check;
mod error;
mod name;
mod peer;
mod private_file;
mod revocation;
mod secret;
mod snippet;
mod store;

pub use change_over::{ChangeOver, ChangeOverError, Phase, change_over, parse_endpoint};
pub use check::{Expectation, Report, check_files};
pub use error::{Result, StoreError};
pub use name::{NodeName, NodeNameError};
pub use peer::check_peer;
pub use revocation::{CrlError, crl_days_left};
pub use secret::{Secret, SecretError};
pub use snippet::Snippet;
pub use store::{Days, Dropped, Store};
