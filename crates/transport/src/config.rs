//! The inputs of a mesh at its start: the identity that it shows to peers, and its settings.

use std::sync::Arc;

use crate::handshake::{MAX_EXTRA_BYTES, MAX_NAME_BYTES};
use crate::{HostPort, IdentityKey, PeerId, Security, TransportError};

/// Returns true if connections from an IP address (text such as `127.0.0.1` or `::1`) are welcome. Called in a thread of
/// its own; it may block, also for ever. Then its thread is left behind when the mesh is dropped.
pub type AllowAddress = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The identity of this process, as its hello tells every peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The id of the data directory (rule 14).
    pub replica: [u8; 16],
    /// The id of this connect(): the address of frames.
    pub incarnation: PeerId,
    /// Node name, at most 255 bytes (as the next two fields).
    pub name: String,
    /// Cluster name; peers with another one are refused.
    pub group_name: String,
    /// Where peers reach this node: `host:port`. Port 0 stands for the port that was bound; an
    /// unspecified host (`0.0.0.0`, `::`) for the address that the peer sees.
    pub listen_addr: String,
    /// Cluster uuid, all zero while unknown; peers with another one are refused (rule 11).
    pub history: [u8; 16],
    /// `gmcast.segment`.
    pub segment: u8,
    /// Bytes of the upper layer for a new peer; at most 4 KiB.
    pub extra: Vec<u8>,
}

impl Identity {
    /// Checks the lengths against the limits of the handshake.
    pub(crate) fn check(&self) -> Result<(), TransportError> {
        let fields = [
            ("the node name", self.name.len(), MAX_NAME_BYTES),
            ("the cluster name", self.group_name.len(), MAX_NAME_BYTES),
            (
                "the advertised address",
                self.listen_addr.len(),
                MAX_NAME_BYTES,
            ),
            ("the member information", self.extra.len(), MAX_EXTRA_BYTES),
        ];
        match fields.into_iter().find(|(_, len, limit)| len > limit) {
            Some((field, len, limit)) => Err(TransportError::IdentityTooLong { field, len, limit }),
            None => Ok(()),
        }
    }
}

/// The settings of a mesh. [`MeshConfig::new`] has the defaults.
pub struct MeshConfig {
    /// Address to listen on. A name is resolved (blocking) at the start; port 0 takes a free port.
    pub listen: HostPort,
    /// The addresses of `gcomm://`. The node's own address may be among them, and addresses that do not answer.
    pub seeds: Vec<HostPort>,
    /// Lowest and highest protocol version that this node speaks; the highest common version is chosen per peer.
    pub versions: (u16, u16),
    /// Maximum of bytes that wait for one peer, before [`crate::SendOutcome::Overflow`]. A single frame may exceed it,
    /// if it waits alone.
    pub queue_limit_bytes: usize,
    /// Maximum payload of a frame in bytes, sent or received.
    pub max_frame_bytes: u32,
    /// First pause before an address is called again; doubled up to `retry_max_ms`.
    pub retry_min_ms: u64,
    /// Longest pause between calls to an address.
    pub retry_max_ms: u64,
    /// Longest pause for learnt addresses without an answer for a minute, and for peers that refused this node.
    pub retry_slow_ms: u64,
    /// Time limit for connecting and handshake together.
    pub handshake_timeout_ms: u64,
    /// TCP_USER_TIMEOUT: the kernel drops a connection on which sent bytes stay unacknowledged for so long. Then the
    /// mesh dials anew, since TCP itself would probe a healed link too rarely. 0: the system's default.
    pub user_timeout_ms: u32,
    /// Decides which addresses may connect; `None`: all.
    pub allow: Option<AllowAddress>,
    /// The protection of connections.
    pub security: Security,
    /// The key of this data directory, which proves [`Identity::replica`]. On encrypted connections, peers refuse a
    /// node without one.
    pub key: Option<IdentityKey>,
}

impl MeshConfig {
    /// Returns the defaults, listening on `listen`.
    pub fn new(listen: HostPort, seeds: Vec<HostPort>) -> Self {
        Self {
            listen,
            seeds,
            versions: (1, 1),
            queue_limit_bytes: 64 << 20,
            // Members send a large payload in parts: no message of theirs is far above 1 MiB.
            max_frame_bytes: 16 << 20,
            retry_min_ms: 50,
            retry_max_ms: 1_000,
            retry_slow_ms: 10_000,
            handshake_timeout_ms: 3_000,
            user_timeout_ms: 5_000,
            allow: None,
            security: Security::default(),
            key: None,
        }
    }
}
