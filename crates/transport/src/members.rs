//! Members and foreign processes. In: the members, as the upper layer knows them. All other peers have small frames and
//! few links, and give way to members.

use std::collections::BTreeSet;
use std::net::IpAddr;

use trireme_mutants::{Mutant, planted};

use crate::mesh::Mesh;
use crate::{DownReason, PeerInfo, Refusal, RefusalCode};

/// Maximum frame of a peer that is no member: a request for admission is far shorter.
const STRANGERS_FRAME_BYTES: u32 = 64 << 10;
/// Maximum of links of non-members from one address; a further one displaces the oldest.
const MAX_STRANGERS_PER_ADDRESS: usize = 16;
/// Maximum of links: far more than a cluster has, and few enough for the descriptors of a server.
const MAX_LINKS: usize = 128;

impl Mesh {
    /// Sets the replicas that are members; `None`: unknown, and every peer may be one. Other peers may send frames of
    /// up to 64 KiB, and give way to members when there are too many links. Cheap if nothing changes.
    pub fn set_members(&mut self, members: Option<BTreeSet<[u8; 16]>>) {
        if self.members == members {
            return;
        }
        self.members = members;
        let links: Vec<usize> = self.links.values().copied().collect();
        for token in links {
            self.limit_frames(token);
        }
    }

    /// Sets the maximum frame of an established connection.
    pub(crate) fn limit_frames(&mut self, token: usize) {
        let limit_bytes = match self.stranger(token) {
            Some(_) if !planted(Mutant::StrangersFramesLong) => {
                STRANGERS_FRAME_BYTES.min(self.max_frame_bytes)
            }
            _ => self.max_frame_bytes,
        };
        if let Some(connection) = self.connections.get_mut(&token) {
            connection.decoder.set_max_frame_bytes(limit_bytes);
        }
    }

    fn is_member(&self, replica: &[u8; 16]) -> bool {
        let known = self.members.as_ref();
        known.is_none_or(|members| members.contains(replica))
    }

    /// Returns the peer of a connection, if it is no member.
    fn stranger(&self, token: usize) -> Option<&PeerInfo> {
        let peer = self.connections.get(&token)?.peer.as_ref();
        peer.filter(|peer| !self.is_member(&peer.replica))
    }

    /// Returns the links of non-members, the oldest first; of one address, or of all.
    fn strangers(&self, ip: Option<IpAddr>) -> Vec<usize> {
        let is_one = |token: &usize| {
            let peer = self.stranger(*token);
            peer.is_some_and(|peer| ip.is_none_or(|ip| peer.remote_ip == ip))
        };
        let mut links: Vec<usize> = self.links.values().copied().filter(is_one).collect();
        links.sort_unstable(); // tokens grow
        links
    }

    /// Makes room for one more link with this replica. Err: the reason why there is none.
    pub(crate) fn make_room(&mut self, replica: &[u8; 16], ip: IpAddr) -> Result<(), Refusal> {
        if !self.is_member(replica) {
            let others = self.strangers(Some(ip));
            if others.len() >= MAX_STRANGERS_PER_ADDRESS {
                self.drop_connection(others[0], DownReason::Local);
            }
        }
        if self.links.len() < MAX_LINKS || planted(Mutant::LinksUnbounded) {
            return Ok(());
        }
        let gives_way = self.strangers(None).first().copied();
        match gives_way.filter(|_| self.is_member(replica)) {
            Some(oldest) => {
                self.drop_connection(oldest, DownReason::Local);
                Ok(())
            }
            None => Err(Refusal {
                code: RefusalCode::Application,
                text: format!(
                    "it is connected with {MAX_LINKS} others already, which is all it takes"
                ),
            }),
        }
    }
}
