//! Members and foreign processes: which peers are members, as the upper layer knows them, and from which addresses
//! members have been connected. All other peers have small frames and few links, and give way to members.

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;

use trireme_mutants::{Mutant, planted};

use crate::connection::Connection;
use crate::connections::Connections;
use crate::{PeerInfo, PublicKey, Refusal, RefusalCode};

/// Maximum frame of a peer that is no member: a request for admission is far shorter.
const STRANGERS_FRAME_BYTES: u32 = 64 << 10;
/// Maximum of links of non-members from one address; a further one displaces the oldest.
const MAX_STRANGERS_PER_ADDRESS: usize = 16;
/// Maximum of links with one replica: one, and some that were not yet found to be broken while its node restarts. A
/// further one displaces the oldest.
const MAX_LINKS_PER_REPLICA: usize = 4;
/// Maximum of links: far more than a cluster has, and few enough for the descriptors of a server.
const MAX_LINKS: usize = 128;
/// Maximum of addresses of members that are remembered; beyond it, the one met longest ago gives way.
const MAX_MET: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Members {
    /// The members' replicas, as far as the layer above knows them. `None`: every peer may be one.
    replicas: Option<BTreeSet<[u8; 16]>>,
    /// They are those of a primary component; otherwise of the last one, and any peer may belong to the next.
    are_current: bool,
    /// Addresses from which members have been connected, the one met last at the end.
    met: VecDeque<IpAddr>,
}

impl Members {
    /// Returns true if this changes anything.
    pub(crate) fn set(&mut self, replicas: Option<BTreeSet<[u8; 16]>>, are_current: bool) -> bool {
        let changes = self.replicas != replicas || self.are_current != are_current;
        (self.replicas, self.are_current) = (replicas, are_current);
        changes
    }

    /// Notes the address of a linked peer, if it is known to be a member.
    pub(crate) fn meet(&mut self, peer: &PeerInfo) {
        let known = self.replicas.as_ref();
        let is_listed = known.is_some_and(|members| members.contains(&peer.replica));
        if is_listed {
            self.met.retain(|ip| *ip != peer.remote_ip);
            self.met.push_back(peer.remote_ip);
            if self.met.len() > MAX_MET {
                self.met.pop_front();
            }
        }
    }

    pub(crate) fn has_met(&self, ip: &IpAddr) -> bool {
        self.met.contains(ip)
    }

    /// Returns true if a peer of this replica may be a member.
    pub(crate) fn is_member(&self, replica: &[u8; 16]) -> bool {
        let known = self.replicas.as_ref();
        known.is_none_or(|members| members.contains(replica))
    }

    /// Returns the peer of a connection, if it is no member.
    fn stranger<'a>(&self, connection: &'a Connection) -> Option<&'a PeerInfo> {
        let peer = connection.peer.as_ref();
        peer.filter(|peer| !self.is_member(&peer.replica))
    }

    /// Maximum of bytes in a frame of this connection, at most `max_bytes`.
    pub(crate) fn frame_bytes(&self, connection: &Connection, max_bytes: u32) -> u32 {
        match self.stranger(connection) {
            Some(_) if self.are_current && !planted(Mutant::StrangersFramesLong) => {
                STRANGERS_FRAME_BYTES.min(max_bytes)
            }
            _ => max_bytes,
        }
    }

    /// Returns the links of non-members, the oldest first; of one address, or of all.
    fn strangers(&self, connections: &Connections, ip: Option<IpAddr>) -> Vec<usize> {
        oldest_first(connections, |peer| {
            !self.is_member(&peer.replica) && ip.is_none_or(|ip| peer.remote_ip == ip)
        })
    }

    /// Returns the link that gives way to one more link with this replica, if one must. Err: the reason why there is no
    /// room. `key`: the peer has proven it, so its links count apart from those of peers that only claim the replica.
    pub(crate) fn room_for(
        &self,
        replica: &[u8; 16],
        key: Option<&PublicKey>,
        ip: IpAddr,
        connections: &Connections,
    ) -> Result<Option<usize>, Refusal> {
        let own = oldest_first(connections, |peer| {
            peer.replica == *replica && peer.key.as_ref() == key
        });
        if own.len() >= MAX_LINKS_PER_REPLICA {
            return Ok(own.first().copied());
        }
        if !self.is_member(replica) {
            let others = self.strangers(connections, Some(ip));
            if others.len() >= MAX_STRANGERS_PER_ADDRESS {
                return Ok(others.first().copied());
            }
        }
        if connections.links_len() < MAX_LINKS || planted(Mutant::LinksUnbounded) {
            return Ok(None);
        }
        let oldest = self.strangers(connections, None).first().copied();
        match oldest.filter(|_| self.is_member(replica)) {
            Some(oldest) => Ok(Some(oldest)),
            None => Err(Refusal {
                code: RefusalCode::Application,
                text: format!(
                    "it is connected with {MAX_LINKS} others already, which is all it takes"
                ),
            }),
        }
    }
}

/// Returns the links with such peers, the oldest first.
fn oldest_first(connections: &Connections, is_one: impl Fn(&PeerInfo) -> bool) -> Vec<usize> {
    let mut links = connections.links();
    links.retain(|token| {
        let peer = connections.get(*token).and_then(|c| c.peer.as_ref());
        peer.is_some_and(&is_one)
    });
    links.sort_unstable(); // tokens grow
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn peer(id: u8) -> PeerInfo {
        PeerInfo {
            replica: [id; 16],
            incarnation: [id; 16],
            name: String::new(),
            listen_addr: String::new(),
            segment: 0,
            history: [0; 16],
            extra: Vec::new(),
            remote_ip: ip(id),
            version: 1,
            protection: String::new(),
            key: None,
        }
    }

    #[test]
    fn only_listed_members_are_met() {
        let mut members = Members::default();
        members.meet(&peer(2));
        assert!(!members.has_met(&ip(2)), "nobody is listed yet");
        members.set(Some(BTreeSet::from([[2; 16]])), true);
        members.meet(&peer(2));
        members.meet(&peer(3));
        assert!(members.has_met(&ip(2)) && !members.has_met(&ip(3)));
        members.set(None, false);
        members.meet(&peer(3));
        assert!(members.has_met(&ip(2)) && !members.has_met(&ip(3)));
    }

    #[test]
    fn the_addresses_met_last_are_remembered() {
        let mut members = Members::default();
        members.set(Some(BTreeSet::from([[2; 16]])), true);
        let at = |number: u16| {
            let [high, low] = number.to_be_bytes();
            IpAddr::from([10, 0, high, low])
        };
        let mut meet = |number| {
            members.meet(&PeerInfo {
                remote_ip: at(number),
                ..peer(2)
            });
            members.has_met(&at(0))
        };
        // The first is met again and again.
        for number in 0..300 {
            assert!(meet(number) && meet(0), "{number}");
        }
        assert!(members.has_met(&at(299)) && !members.has_met(&at(1)));
        assert_eq!(members.met.len(), MAX_MET);
    }
}
