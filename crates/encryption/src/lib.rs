//! How a cluster comes to its encryption: what `trireme tls` and `trireme secret` do.
//!
//! [`Store`] is an operator's directory with the authority's key and the files of each node: it makes and renews them.
//! [`check_files`] and [`check_peer`] look at what a node is configured with, and at what a running peer presents.
//! [`change_over`] leads a live cluster from plaintext to TLS through SQL. [`Secret`] is the file of a shared secret.
//!
//! Nothing here is part of the provider: a cluster whose operator makes certificates in another way needs none of it.

#![forbid(unsafe_code)]

mod authority;
mod certificate;
mod change_over;
mod check;
mod error;
mod name;
mod peer;
mod private_file;
mod secret;
mod snippet;
mod store;

pub use change_over::{ChangeOver, ChangeOverError, Phase, change_over, parse_endpoint};
pub use check::{Expectation, Report, check_files};
pub use error::{Result, StoreError};
pub use name::{NodeName, NodeNameError};
pub use peer::check_peer;
pub use secret::{Secret, SecretError};
pub use snippet::Snippet;
pub use store::{Days, Store};
