//! What a connection has beside the engine's part: the mesh, and the file of promises.

use std::collections::BTreeSet;

use bytes::Bytes;
use trireme_engine::Channel;
use trireme_group::{Incarnation, Uuid};
use trireme_transport::{Frame, Mesh, MeshEvent, PeerId, SendOutcome};

use crate::limiter::LineLimiter;
use crate::votes::Votes;

/// A connection to the others.
pub struct Line {
    /// The sockets.
    pub mesh: Mesh,
    /// What this replica has promised.
    pub votes: Votes,
    /// Room that is used again and again.
    pub(crate) events: Vec<MeshEvent>,
    /// Of the lines that peers cause.
    pub(crate) limiter: LineLimiter,
    /// Peers that sent what cannot be read: nothing more is taken from them on these connections, which are about to
    /// end.
    pub(crate) dropped: BTreeSet<PeerId>,
    /// The view whose members the mesh knows: its number, and the override that it is of; none: it knows none.
    pub(crate) seen_view: Option<(u64, Option<Uuid>)>,
    /// An operator lets this node's data be replaced by that of another cluster.
    pub lets_data_go: bool,
    /// Addresses that this node called, where a node with the data of another cluster answered.
    strangers: BTreeSet<String>,
}

/// So many of them are remembered.
const STRANGERS_MAX: usize = 64;

impl Line {
    /// A connection that has just been opened.
    pub fn new(mesh: Mesh, votes: Votes) -> Line {
        Line {
            mesh,
            votes,
            events: Vec::new(),
            limiter: LineLimiter::default(),
            dropped: BTreeSet::new(),
            seen_view: None,
            lets_data_go: false,
            strangers: BTreeSet::new(),
        }
    }

    pub(crate) fn met_stranger(&mut self, address: String) {
        if self.strangers.len() < STRANGERS_MAX {
            self.strangers.insert(address);
        }
    }

    /// The first of these addresses where another cluster answered, while nobody of the own one is connected.
    pub fn only_stranger(&self, addresses: &[String]) -> Option<&String> {
        let nobody = self.mesh.peers().next().is_none();
        (self.strangers.iter()).find(|stranger| nobody && addresses.contains(stranger))
    }

    /// Hands a message to the queues of these peers; it leaves with the next flush of the mesh.
    pub fn send(&mut self, to: &[Incarnation], channel: Channel, bytes: Bytes) {
        // Group and replicator bound their messages far below 4 GiB.
        let Ok(frame) = Frame::new(&[channel.byte()], Some(bytes)) else {
            return;
        };
        for peer in to {
            // Dropped frames are made up for by the protocol: the peer asks again, or Drained comes.
            let _: SendOutcome = match channel {
                Channel::Bulk => self.mesh.send_bulk(peer.0.0, frame.clone()),
                Channel::Group | Channel::Replicator => self.mesh.send(peer.0.0, frame.clone()),
            };
        }
    }
}
