//! The peers to which this node gives missing entries. An IST that has begun goes on to its end, whatever entries the log
//! may give to other peers: the log keeps the rest for it.

use std::collections::BTreeMap;

use trireme_certification::Seqno;
use trireme_group::{Incarnation, Position};

/// The last entry that a peer was given.
#[derive(Clone, Copy, Debug)]
struct Given {
    seqno: Seqno,
    position: Position,
}

/// The peers that were given entries. The first entry is a promise of the later ones: a peer that has handed an entry
/// to its server can take no SST any more.
#[derive(Debug, Default)]
pub(super) struct Served {
    peers: BTreeMap<Incarnation, Given>,
}

impl Served {
    /// Notes that this peer was given entries from this one on. Returns true if they are the first.
    pub(super) fn note(&mut self, peer: Incarnation, seqno: Seqno, position: Position) -> bool {
        self.peers.insert(peer, Given { seqno, position }).is_none()
    }

    /// Returns true if this peer was given `seqno`, or an earlier entry.
    pub(super) fn goes_on(&self, peer: Incarnation, seqno: Seqno) -> bool {
        (self.peers.get(&peer)).is_some_and(|given| given.seqno <= seqno)
    }

    /// Forgets the peers that need no more. `may_go_on`: tells that of a peer, and of the last seqno that it pulled.
    pub(super) fn keep(&mut self, may_go_on: impl Fn(Incarnation, Seqno) -> bool) {
        self.peers
            .retain(|peer, given| may_go_on(*peer, given.seqno));
    }

    /// Returns the first position that a peer may still pull.
    pub(super) fn needed_from(&self) -> Option<Position> {
        self.peers.values().map(|given| given.position).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u8) -> Incarnation {
        Incarnation(trireme_group::Uuid([number; 16]))
    }

    #[test]
    fn a_transfer_goes_on_upwards_until_its_peer_needs_no_more() {
        let mut served = Served::default();
        assert!(served.note(peer(1), 5, 50));
        assert!(!served.note(peer(1), 6, 60), "not the first");
        assert!(served.goes_on(peer(1), 6) && served.goes_on(peer(1), 9));
        assert!(!served.goes_on(peer(1), 5), "it has that");
        assert!(!served.goes_on(peer(2), 6), "another peer");
        assert!(served.note(peer(2), 3, 30));
        assert_eq!(served.needed_from(), Some(30));
        served.keep(|of, seqno| (of, seqno) == (peer(1), 6));
        assert_eq!(served.needed_from(), Some(60));
        served.keep(|_, _| false);
        assert_eq!(served.needed_from(), None);
    }
}
