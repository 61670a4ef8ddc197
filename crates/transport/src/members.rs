//! Members and strangers: as long as the layer above knows who the members are, others have little room.

use std::collections::BTreeSet;
use std::net::IpAddr;

use trireme_mutants::{Mutant, planted};

use crate::mesh::Mesh;
use crate::{DownReason, PeerInfo, Refusal, RefusalCode};

/// The longest frame of a stranger: what a process says that asks for admission is far shorter.
const STRANGERS_FRAME_BYTES: u32 = 64 << 10;
/// Links of strangers from one address; a further one displaces the oldest.
const MAX_STRANGERS_PER_ADDRESS: usize = 16;
/// Peers of one node: far more than a cluster has, and few enough for the descriptors of a server.
const MAX_LINKS: usize = 128;

impl Mesh {
    /// Sets whose replicas are members; `None`: it is not known, and everybody may be one. Others may send frames of up to
    /// 64 KiB, and give way to members when there are too many links. Cheap if nothing changes.
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

    /// Sets how long frames of a connection that stands may be.
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

    /// The peer of a connection, if it is no member.
    fn stranger(&self, token: usize) -> Option<&PeerInfo> {
        let peer = self.connections.get(&token)?.peer.as_ref();
        peer.filter(|peer| !self.is_member(&peer.replica))
    }

    /// The links of strangers, the oldest first; of one address, or of all.
    fn strangers(&self, ip: Option<IpAddr>) -> Vec<usize> {
        let is_one = |token: &usize| {
            let peer = self.stranger(*token);
            peer.is_some_and(|peer| ip.is_none_or(|ip| peer.remote_ip == ip))
        };
        let mut links: Vec<usize> = self.links.values().copied().filter(is_one).collect();
        links.sort_unstable(); // tokens grow
        links
    }

    /// Makes room for one more link with this replica; why there is none.
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
