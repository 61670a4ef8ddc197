//! What can go wrong when a mesh is set up. What goes wrong later is told as events.

use std::io;

/// Why a mesh could not be set up: one line that says what, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// An address that cannot be read.
    #[error("invalid address {text:?}: {why}; write host:port, or [v6]:port")]
    InvalidAddress {
        /// The address as given.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The host name to listen on has no address.
    #[error(
        "cannot listen on {address}: the host name does not resolve ({source}); correct gmcast.listen_addr"
    )]
    Resolve {
        /// `host:port` as configured.
        address: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// Another process listens there.
    #[error(
        "cannot listen on {address}: the port is in use; stop the process that holds it (see: ss -ltnp) \
         or set another base_port or gmcast.listen_addr"
    )]
    PortInUse {
        /// The address that is taken.
        address: String,
    },
    /// The system refused the listening socket for another reason.
    #[error("cannot listen on {address}: {source}; check gmcast.listen_addr and base_port")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// No poller (epoll) could be had.
    #[error("cannot set up the network poller: {0}; check the limit of open files")]
    Poll(#[from] io::Error),
    /// A field of the identity exceeds what the handshake carries.
    #[error("{field} has {len} bytes, at most {limit} are possible")]
    IdentityTooLong {
        /// Which field.
        field: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
}
