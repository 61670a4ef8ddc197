//! What the mesh tells the layer above.

use std::fmt;
use std::net::IpAddr;

use bytes::Bytes;

use trireme_tls::PublicKey;

use crate::FrameError;

/// A peer process: its incarnation.
pub type PeerId = [u8; 16];

/// A peer, as it presented itself in the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerInfo {
    /// The id of its data directory.
    pub replica: [u8; 16],
    /// The id of its connect().
    pub incarnation: PeerId,
    /// Its node name.
    pub name: String,
    /// Where it is reached, `host:port`.
    pub listen_addr: String,
    /// `gmcast.segment`.
    pub segment: u8,
    /// Its cluster uuid at the time of the handshake; all zero if unknown.
    pub history: [u8; 16],
    /// What its upper layer had to say at the time of the handshake.
    pub extra: Vec<u8>,
    /// The address that it connects from.
    pub remote_ip: IpAddr,
    /// The protocol version to speak with it.
    pub version: u16,
    /// How the connection is protected, for a line of a log: the cipher, and the peer's certificate.
    pub protection: String,
    /// The key of its data directory, as it has proven; none on plain TCP.
    pub key: Option<PublicKey>,
}

/// What the mesh tells the layer above. All events about a peer come between its `PeerUp` and its
/// `PeerDown`.
#[derive(Clone, Debug, PartialEq)]
pub enum MeshEvent {
    /// A connection to a peer stands. Frames lost with an earlier one are not sent again.
    PeerUp {
        /// The peer.
        info: PeerInfo,
        /// The incarnation of another peer, connected right now, with the same replica id: a process
        /// that died unnoticed, or a copied data directory (rule 14). The upper layer decides.
        same_replica: Option<PeerId>,
    },
    /// The connection to a peer is gone. The mesh calls it again by itself.
    PeerDown {
        /// The peer.
        incarnation: PeerId,
        /// Why.
        reason: DownReason,
    },
    /// A frame arrived: head and body in one piece.
    Frame {
        /// The sender.
        from: PeerId,
        /// What it sent. May share its allocation with frames that arrived together.
        bytes: Bytes,
    },
    /// Nobody listens at an address; told upon every attempt.
    Refused {
        /// `host:port` as listed or advertised.
        address: String,
        /// The peer that this node itself had reached there before: its process is dead (rule 10).
        incarnation: Option<PeerId>,
    },
    /// The queue of a peer that had overflowed is empty: it takes frames again, and what was dropped in
    /// between has to be made up from the log.
    Drained {
        /// The peer.
        incarnation: PeerId,
    },
    /// A peer was turned away, or turned this node away. At most once a minute per address and reason.
    Rejected {
        /// `host:port` that was called, or the IP address of a caller.
        address: String,
        /// The kind of trouble.
        reason: RejectReason,
        /// The line to log: what, where, what to do.
        text: String,
    },
}

/// Why a connection to a peer ended.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DownReason {
    /// The peer closed it, or its process ended.
    #[error("the peer closed the connection")]
    Closed,
    /// The system reported an error.
    #[error("connection lost: {0}")]
    Io(String),
    /// The peer sent what is no valid frame.
    #[error("invalid data from the peer, connection dropped: {0}")]
    Invalid(FrameError),
    /// The peer opened a new connection, having lost this one.
    #[error("replaced by a newer connection")]
    Replaced,
    /// This node was isolated (`gmcast.isolate`).
    #[error("this node was isolated")]
    Isolated,
    /// The layer above asked for it.
    #[error("disconnected by this node")]
    Local,
    /// The peer's upper layer refused this node; a [`MeshEvent::Rejected`] has the text.
    #[error("refused by the peer")]
    Refused,
}

/// Kinds of rejection, for the choice of a log level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RejectReason {
    /// Not Trireme's protocol: Galera, TLS, or anything else.
    ForeignProtocol,
    /// Another framing, or no common protocol version.
    Version,
    /// Another cluster name.
    GroupName,
    /// The data of another cluster.
    History,
    /// The address is not in the allowlist.
    NotAllowed,
    /// The peer's allow-list lacks this node.
    NotAllowedByPeer,
    /// Damaged or malformed handshake.
    Malformed,
    /// Connected, but no handshake in time.
    Timeout,
    /// The upper layer (here or there) refused.
    Application,
    /// Only one of the two encrypts, one does not trust the other's certificate, or they have different secrets.
    Tls,
    /// A peer that is connected without TLS calls with it, too.
    TlsInVain,
    /// One of the two is not who it says it is.
    Identity,
    /// The connection broke during the TLS handshake.
    Broken,
    /// No connection could be accepted.
    AcceptFailed,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SendOutcome {
    /// It waits for the next [`crate::Mesh::flush`].
    Queued,
    /// The peer's queue is full: dropped, as will be all frames until [`MeshEvent::Drained`].
    Overflow,
    /// No such peer is connected.
    NotConnected,
    /// The frame exceeds `max_frame_bytes`.
    TooLarge,
}

/// Formats an id as a uuid.
pub(crate) struct Uuid<'a>(pub &'a [u8; 16]);

impl fmt::Display for Uuid<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}
