//! The peers to which this node gives missing entries. An IST that has begun goes on, whatever entries the log may give
//! to other peers meanwhile.

use std::collections::BTreeMap;

use trireme_certification::Seqno;
use trireme_group::Incarnation;

/// Maximum of peers, above any cluster's number of members; beyond it, the peer that was served longest ago is
/// forgotten.
const PEERS_MAX: usize = 64;

/// The last entry that a peer was given.
#[derive(Clone, Copy, Debug)]
struct Given {
    seqno: Seqno,
    at_ms: u64,
}

/// Peers that were given entries recently. The first entry is a promise of the later ones: a joiner that has handed an
/// entry to its server can take no SST any more.
#[derive(Debug, Default)]
pub(super) struct Served {
    peers: BTreeMap<Incarnation, Given>,
}

impl Served {
    /// Notes that this peer was given entries from `seqno` on.
    pub(super) fn note(&mut self, peer: Incarnation, seqno: Seqno, now_ms: u64) {
        if self.peers.len() >= PEERS_MAX && !self.peers.contains_key(&peer) {
            let oldest = self.peers.iter().min_by_key(|(_, given)| given.at_ms);
            if let Some(oldest) = oldest.map(|(peer, _)| *peer) {
                self.peers.remove(&oldest);
            }
        }
        let at_ms = now_ms;
        self.peers.insert(peer, Given { seqno, at_ms });
    }

    /// Returns true if this peer was given `seqno`, or an earlier entry, within the last `lasts_ms`.
    pub(super) fn goes_on(
        &self,
        peer: Incarnation,
        seqno: Seqno,
        now_ms: u64,
        lasts_ms: u64,
    ) -> bool {
        let given = self.peers.get(&peer);
        given.is_some_and(|given| given.seqno <= seqno && now_ms <= given.at_ms + lasts_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LASTS_MS: u64 = 10_000;

    fn peer(number: u8) -> Incarnation {
        Incarnation(trireme_group::Uuid([number; 16]))
    }

    #[test]
    fn a_transfer_goes_on_for_a_while_and_only_upwards() {
        let mut served = Served::default();
        served.note(peer(1), 5, 1_000);
        let goes_on = |n, seqno, now_ms| served.goes_on(peer(n), seqno, now_ms, LASTS_MS);
        assert!(goes_on(1, 5, 1_000) && goes_on(1, 9, 11_000));
        assert!(!goes_on(1, 4, 1_000), "nobody has promised that");
        assert!(!goes_on(1, 5, 11_001), "too late");
        assert!(!goes_on(2, 5, 1_000), "another peer");
    }

    #[test]
    fn peers_are_bounded() {
        let mut served = Served::default();
        for n in 0..=PEERS_MAX as u8 {
            served.note(peer(n), 1, u64::from(n));
        }
        assert_eq!(served.peers.len(), PEERS_MAX);
        assert!(!served.goes_on(peer(0), 1, 64, LASTS_MS));
        assert!(served.goes_on(peer(64), 1, 64, LASTS_MS));
    }
}
