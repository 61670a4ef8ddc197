//! TLS 1.3 for the connections between members.
//!
//! [`Credentials`] are read from the files of an operator, and checked then: each error names the option, the file and
//! the remedy. A [`Handshake`] proves both sides to each other on a non-blocking socket and becomes a [`Session`], a
//! stream that keeps what it has encrypted until the socket takes it. Both sides present a certificate; it must lead to
//! `socket.ssl_ca`. Names in certificates are not compared: nodes are known by address lists and not by names. Or both
//! have the secret of `repl.secret_file`, and no certificate counts.
//!
//! There are no session tickets, no early data, no renegotiation and no older versions.

#![forbid(unsafe_code)]

mod credentials;
mod error;
mod failure;
mod files;
mod handshake;
mod secret;
mod session;
#[cfg(feature = "testing")]
pub mod testing;
mod wire;

pub use credentials::{Credentials, Files};
pub use error::TlsError;
pub use failure::Failure;
pub use files::days_left;
pub use handshake::{Handshake, Progress, Role};
pub use session::{MAX_RECORD_BYTES, Session};
