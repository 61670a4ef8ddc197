//! The events of the mesh for the layer above.

use std::fmt;
use std::net::IpAddr;

use bytes::Bytes;

use trireme_tls::PublicKey;

use crate::FrameError;

/// A peer process: its incarnation.
pub type PeerId = [u8; 16];

/// A peer, as its hello describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerInfo {
    /// The id of its data directory.
    pub replica: [u8; 16],
    /// The id of its connect().
    pub incarnation: PeerId,
    /// Its node name.
    pub name: String,
    /// The address at which others reach it, `host:port`.
    pub listen_addr: String,
    /// `gmcast.segment`.
    pub segment: u8,
    /// Its cluster uuid at the time of the handshake; all zero if unknown.
    pub history: [u8; 16],
    /// The bytes of its upper layer at the time of the handshake.
    pub extra: Vec<u8>,
    /// The address that it connects from.
    pub remote_ip: IpAddr,
    /// The protocol version of the connection.
    pub version: u16,
    /// The protection of the connection, for a line of a log: the cipher, and the peer's certificate.
    pub protection: String,
    /// The proven key of its data directory; none on plain TCP.
    pub key: Option<PublicKey>,
}

/// An event of the mesh for the layer above. All events about a peer come between its `PeerUp` and its `PeerDown`.
#[derive(Clone, Debug, PartialEq)]
pub enum MeshEvent {
    /// A connection to a peer is established. Frames that were lost with an earlier connection are not sent again.
    PeerUp {
        /// The peer. In a box: most events are frames, and each takes the room of the longest kind.
        info: Box<PeerInfo>,
        /// The incarnation of another connected peer with the same replica id: a process whose death was not noticed,
        /// or a copied data directory (rule 14). The upper layer decides.
        same_replica: Option<PeerId>,
    },
    /// The connection to a peer is gone. The mesh calls the peer again by itself.
    PeerDown {
        /// The peer.
        incarnation: PeerId,
        /// The cause.
        reason: DownReason,
    },
    /// A frame arrived: head and body in one piece.
    Frame {
        /// The sender.
        from: PeerId,
        /// Its bytes. They may share an allocation with frames that arrived together.
        bytes: Bytes,
    },
    /// No process listens at an address; reported at every attempt.
    Refused {
        /// `host:port` as listed or advertised.
        address: String,
        /// The peer that this node itself had reached at the address before, and its replica: its process is dead (rule
        /// 10), if no other process had called itself so.
        peer: Option<(PeerId, [u8; 16])>,
    },
    /// The queue of a peer that had overflowed is empty. The peer takes frames again, and needs the dropped ones from
    /// the log.
    Drained {
        /// The peer.
        incarnation: PeerId,
    },
    /// This node refused a peer, or a peer refused this node. At most once a minute per address and reason.
    Rejected {
        /// `host:port` that was called, or the IP address of a caller.
        address: String,
        /// The kind of the reason.
        reason: RejectReason,
        /// The line to log: problem, place, remedy.
        text: String,
    },
}

/// The reason why a connection to a peer ended.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DownReason {
    /// The peer closed it, or its process ended.
    #[error("the peer closed the connection")]
    Closed,
    /// The system reported an error.
    #[error("connection lost: {0}")]
    Io(String),
    /// The peer sent an invalid frame.
    #[error("invalid data from the peer, connection dropped: {0}")]
    Invalid(FrameError),
    /// The peer opened a new connection, because it had lost this one.
    #[error("replaced by a newer connection")]
    Replaced,
    /// This node was isolated (`gmcast.isolate`).
    #[error("this node was isolated")]
    Isolated,
    /// The layer above requested it.
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
    /// The peer's address is not in this node's allowlist.
    NotAllowed,
    /// This node's address is not in the peer's allowlist.
    NotAllowedByPeer,
    /// Damaged or malformed handshake.
    Malformed,
    /// The peer connected, but did not finish the handshake in time.
    Timeout,
    /// The upper layer (of either side) refused.
    Application,
    /// Only one of the two nodes encrypts, one does not trust the other's certificate, or their secrets differ.
    Tls,
    /// A peer that is connected without TLS also calls with TLS.
    TlsInVain,
    /// One of the two nodes has not proven its identity.
    Identity,
    /// The connection broke during the TLS handshake.
    Broken,
    /// No connection could be accepted.
    AcceptFailed,
}

/// The result of sending a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SendOutcome {
    /// The frame waits for the next [`crate::Mesh::flush`].
    Queued,
    /// The peer's queue is full: this frame and all later ones are dropped until [`MeshEvent::Drained`].
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
