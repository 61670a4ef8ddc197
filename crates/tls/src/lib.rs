//! TLS 1.3 for the connections between members.
//!
//! [`Credentials`] are read from the files of an operator, and checked then: each error names the option, the file and
//! the remedy. A [`Handshake`] proves both sides to each other on a non-blocking socket and becomes a [`Session`], a
//! stream that keeps what it has encrypted until the socket takes it. Both sides present a certificate; it must lead to
//! `socket.ssl_ca`. Names in certificates are not compared: nodes are known by address lists and not by names. Or both
//! have the secret of `repl.secret_file`, and no certificate counts. An [`IdentityKey`] then says who of those admitted a
//! peer is, by a [`Proof`] that is bound to the session.
//!
//! There are no session tickets, no early data, no renegotiation and no older versions.

#![forbid(unsafe_code)]

mod certificate;
mod credentials;
mod error;
mod failure;
mod files;
mod handshake;
mod identity;
mod private;
mod secret;
mod session;
#[cfg(feature = "testing")]
pub mod testing;
mod wire;

pub use certificate::{certificate_fingerprint, days_until};
pub use credentials::{Credentials, Files};
pub use error::TlsError;
pub use failure::Failure;
pub use files::days_left;
/// What OpenSSL itself complains of.
pub use openssl::error::ErrorStack as LibraryError;

pub use handshake::{Handshake, Progress, Role};
pub use identity::{Claim, IdentityKey, Proof, PublicKey, fingerprint, is_of_a_key, replica_of};
pub use private::{PRIVATE_REMEDY, exposed_mode};
pub use session::{MAX_RECORD_BYTES, Session};
