//! A dialer takes its own handshake for the peer's verdict.
//!
//! In TLS 1.3 the acceptor sees its certificate only then: the link breaks at once, and nobody learns why.

pub(crate) const MISTAKE: &str = "a dialer takes its own handshake for the peer's verdict";
