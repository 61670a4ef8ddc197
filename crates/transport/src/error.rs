//! The errors of setting up a mesh. Later errors are reported as events.

use std::io;

/// The reason why a mesh could not be set up: one line with the problem, the place and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// An invalid address.
    #[error("invalid address {text:?}: {why}; write host:port, or [v6]:port")]
    InvalidAddress {
        /// The address as given.
        text: String,
        /// The fault in the address.
        why: &'static str,
    },
    /// The host name to listen on has no address.
    #[error(
        "cannot listen on {address}: the host name does not resolve ({source}); correct gmcast.listen_addr"
    )]
    Resolve {
        /// `host:port` as configured.
        address: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// Another process listens on the port.
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
        /// The system's error.
        source: io::Error,
    },
    /// The system gave no poller (epoll).
    #[error("cannot set up the network poller: {0}; check the limit of open files")]
    Poll(#[from] io::Error),
    /// A field of the identity exceeds the limit of the handshake.
    #[error("{field} has {len} bytes, at most {limit} are possible")]
    IdentityTooLong {
        /// Name of the field.
        field: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
}
