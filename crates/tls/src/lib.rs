//! TLS 1.3 for the connections between members.
//!
//! [`Credentials`] are read from an operator's files and checked at once: each error names the option, the file and the
//! remedy. A [`Handshake`] proves both sides to each other on a non-blocking socket and becomes a [`Session`]: a stream
//! that keeps encrypted bytes until the socket takes them. Either both sides present a certificate, which must lead to
//! `socket.ssl_ca`; the names in it are not compared, because nodes are known by address lists and not by names. Or
//! both sides have the secret of `repl.secret_file`, and no certificate counts. An [`IdentityKey`] then tells the
//! admitted peers apart, by a [`Proof`] that is bound to the session.
//!
//! There are no session tickets, no early data, no renegotiation and no older versions.

#![forbid(unsafe_code)]

mod authorities;
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

pub use authorities::{authorities, is_same_name, revocation_lists, verify};
pub use certificate::{certificate_fingerprint, days_until};
pub use credentials::{Credentials, Files};
pub use error::TlsError;
pub use failure::Failure;
pub use files::days_left;
/// An error of OpenSSL itself.
pub use openssl::error::ErrorStack as LibraryError;

pub use handshake::{Handshake, Progress, Role};
pub use identity::{Claim, IdentityKey, Proof, PublicKey, fingerprint, is_of_a_key, replica_of};
pub use private::{PRIVATE_REMEDY, exposed_mode};
pub use session::{MAX_RECORD_BYTES, Session};
