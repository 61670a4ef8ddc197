//! What a mesh is told at its start.

use crate::handshake::{MAX_EXTRA_BYTES, MAX_NAME_BYTES};
use crate::{HostPort, IdentityKey, PeerId, Security, TransportError};

/// Decides whether connections from an IP address (text such as `127.0.0.1` or `::1`) are welcome.
/// Called in the reactor thread, without the core's lock; it may block.
pub type AllowAddress = Box<dyn FnMut(&str) -> bool + Send>;

/// Who this process is, as told to every peer in the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The id of the data directory (rule 14).
    pub replica: [u8; 16],
    /// The id of this connect(): the address of frames.
    pub incarnation: PeerId,
    /// Node name, at most 255 bytes (as the next two).
    pub name: String,
    /// Cluster name; peers with another are refused.
    pub group_name: String,
    /// Where peers reach this node: `host:port`. Port 0 stands for the port that was bound; an
    /// unspecified host (`0.0.0.0`, `::`) for the address that the peer sees.
    pub listen_addr: String,
    /// Cluster uuid, all zero while unknown; peers with another one are refused (rule 11).
    pub history: [u8; 16],
    /// `gmcast.segment`.
    pub segment: u8,
    /// Anything that the upper layer wants to tell a new peer; at most 4 KiB.
    pub extra: Vec<u8>,
}

impl Identity {
    /// Checks the lengths against what the handshake carries.
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

/// How a mesh behaves. [`MeshConfig::new`] has the defaults.
pub struct MeshConfig {
    /// Address to listen on. A name is resolved (blocking) at the start; port 0 takes a free one.
    pub listen: HostPort,
    /// The addresses of `gcomm://`. The own one among them, and such as do not answer, do no harm.
    pub seeds: Vec<HostPort>,
    /// Lowest and highest protocol version spoken; the highest common one is chosen per peer.
    pub versions: (u16, u16),
    /// What may wait for one peer, in bytes, before [`crate::SendOutcome::Overflow`]. One frame may
    /// exceed it, alone.
    pub queue_limit_bytes: usize,
    /// The longest frame sent or taken, in bytes of payload.
    pub max_frame_bytes: u32,
    /// First pause before an address is called again; doubled up to `retry_max_ms`.
    pub retry_min_ms: u64,
    /// Longest pause between calls to an address.
    pub retry_max_ms: u64,
    /// Longest pause for learnt addresses silent for a minute, and for peers that refused this node.
    pub retry_slow_ms: u64,
    /// Time for connecting and shaking hands together.
    pub handshake_timeout_ms: u64,
    /// TCP_USER_TIMEOUT: a connection on which sent bytes stay unacknowledged that long is dropped and
    /// dialed anew, since TCP itself would probe a healed link too rarely. 0: the system's default.
    pub user_timeout_ms: u32,
    /// Who may connect; `None`: everybody.
    pub allow: Option<AllowAddress>,
    /// Whether connections are encrypted.
    pub security: Security,
    /// The key of this data directory, which proves [`Identity::replica`]. Without one, peers refuse this node on encrypted
    /// connections.
    pub key: Option<IdentityKey>,
}

impl MeshConfig {
    /// The defaults, listening on `listen`.
    pub fn new(listen: HostPort, seeds: Vec<HostPort>) -> Self {
        Self {
            listen,
            seeds,
            versions: (1, 1),
            queue_limit_bytes: 64 << 20,
            max_frame_bytes: (2 << 30) + (64 << 10),
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
