//! A dialer treats its own end of the handshake as the peer's acceptance.
//!
//! In TLS 1.3 the acceptor checks the dialer's certificate only then: the link breaks at once, and nobody learns why.

pub(crate) const MISTAKE: &str = "a dialer takes its own handshake for the peer's verdict";
