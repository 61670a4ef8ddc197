//! The connection to other nodes, without the engine's part: it owns the mesh, the file of promises, the list of
//! peers whose frames are ignored, and the limits of log lines.

use std::collections::BTreeSet;

use bytes::Bytes;
use trireme_engine::Channel;
use trireme_group::{Incarnation, ReplicaId};
use trireme_replicator::Level;
use trireme_transport::{Frame, Mesh, MeshEvent, PeerId, SendOutcome};

use crate::clock::now_ms;
use crate::limiter::LineLimiter;
use crate::votes::Votes;

/// A connection to the other nodes.
pub struct Line {
    /// The sockets.
    pub mesh: Mesh,
    /// The promises of this replica.
    pub votes: Votes,
    /// A reused buffer.
    pub(crate) events: Vec<MeshEvent>,
    /// Limits the log lines that repeat.
    pub(crate) limiter: LineLimiter,
    /// Peers that sent invalid frames: the node takes nothing more from them on these connections, which are about to
    /// end.
    pub(crate) dropped: BTreeSet<PeerId>,
    /// The members that the mesh knows.
    pub(crate) told_members: ToldMembers,
    /// True if an operator allows that another cluster's data replace this node's.
    pub lets_data_go: bool,
    /// Addresses that this node called, and at which a node with the data of another cluster answered.
    strangers: BTreeSet<String>,
}

/// The members that the mesh was told.
#[derive(Debug, Default)]
pub(crate) struct ToldMembers {
    /// Their replicas; none: every peer may be a member.
    pub replicas: Vec<ReplicaId>,
    /// They are those of a primary component.
    pub are_current: bool,
}

/// Maximum of such addresses.
const STRANGERS_MAX: usize = 64;

impl Line {
    /// Returns a connection that has just been opened.
    pub fn new(mesh: Mesh, votes: Votes) -> Line {
        Line {
            mesh,
            votes,
            events: Vec::new(),
            limiter: LineLimiter::default(),
            dropped: BTreeSet::new(),
            told_members: ToldMembers::default(),
            lets_data_go: false,
            strangers: BTreeSet::new(),
        }
    }

    pub(crate) fn met_stranger(&mut self, address: String) {
        if self.strangers.len() < STRANGERS_MAX {
            self.strangers.insert(address);
        }
    }

    /// Returns the first of these addresses at which another cluster answered, if no node of the own cluster is
    /// connected.
    pub fn only_stranger(&self, addresses: &[String]) -> Option<&String> {
        let nobody = self.mesh.peers().next().is_none();
        (self.strangers.iter()).find(|stranger| nobody && addresses.contains(stranger))
    }

    /// See [`trireme_engine::Host::queued_bytes`].
    pub fn queued_bytes(&self, peer: Incarnation) -> Option<usize> {
        self.mesh.ordinary_queued_bytes(peer.0.0)
    }

    /// Returns true if this line of the engine, the group or the replicator is to be written to the node's log. Otherwise
    /// [`crate::Station::react`] writes a summary later.
    pub fn admits(&mut self, level: Level, text: &str) -> bool {
        self.limiter.admits_shape(now_ms(), level, text)
    }

    /// Hands a message to the queues of these peers; it leaves with the next flush of the mesh.
    pub fn send(&mut self, to: &[Incarnation], channel: Channel, bytes: Bytes) {
        // Group and replicator keep their messages far below 4 GiB.
        let Ok(frame) = Frame::new(&[channel.byte()], Some(bytes)) else {
            return;
        };
        for peer in to {
            // The protocol replaces dropped frames: the peer asks again, or Drained comes.
            let _: SendOutcome = match channel {
                Channel::Bulk => self.mesh.send_bulk(peer.0.0, frame.clone()),
                Channel::Group | Channel::Replicator => self.mesh.send(peer.0.0, frame.clone()),
            };
        }
    }
}
