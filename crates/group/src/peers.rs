//! The peers: their connections, and their last messages.
//!
//! In: connections that come and go, heartbeats. Out: the state of each peer. A peer that is not connected has no
//! status here; its highest promise stays known.

use std::collections::BTreeMap;

use crate::founding::Expects;
use crate::ids::{Incarnation, ReplicaId, Term, TimeMs};
use crate::message::{Outlook, Status};
use crate::peer::Peer;

#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Peers(BTreeMap<Incarnation, Peer>);

impl Peers {
    // ---- queries ----

    /// The state of a peer that is connected, or was and is still of interest.
    pub(crate) fn get(&self, peer: Incarnation) -> Option<&Peer> {
        self.0.get(&peer)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (Incarnation, &Peer)> {
        self.0
            .iter()
            .map(|(incarnation, peer)| (*incarnation, peer))
    }

    pub(crate) fn connected(&self) -> impl Iterator<Item = (Incarnation, &Peer)> {
        self.all().filter(|(_, peer)| peer.up)
    }

    pub(crate) fn names(&self) -> Vec<Incarnation> {
        self.0.keys().copied().collect()
    }

    pub(crate) fn is_up(&self, peer: Incarnation) -> bool {
        self.get(peer).is_some_and(|peer| peer.up)
    }

    pub(crate) fn replica_of(&self, peer: Incarnation) -> Option<ReplicaId> {
        self.get(peer).map(|peer| peer.replica)
    }

    /// The peer's last heartbeat.
    pub(crate) fn status_of(&self, peer: Incarnation) -> Option<&Status> {
        self.get(peer)?.status.as_ref()
    }

    /// The highest term that this process is known to have promised, connected now or earlier.
    pub(crate) fn promised_by(&self, peer: Incarnation) -> Term {
        self.get(peer).map_or(Term::default(), |peer| peer.promised)
    }

    /// The last heartbeats of all peers.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = &Status> {
        self.0.values().filter_map(|peer| peer.status.as_ref())
    }

    /// True if the replica's process is proven dead.
    pub(crate) fn is_dead(&self, replica: ReplicaId) -> bool {
        let mut peers = self.0.values();
        peers.any(|peer| peer.replica == replica && peer.dead)
    }

    // ---- inputs from the coordinator ----

    /// A connection is up. The replica's old process is gone unless it is connected, too: a data directory belongs to
    /// one process at a time (rule 14).
    pub(crate) fn connect(&mut self, replica: ReplicaId, incarnation: Incarnation, now: TimeMs) {
        let peer = Peer {
            replica,
            up: true,
            heard_at: now,
            promised: self.promised_by(incarnation),
            ..Peer::default()
        };
        self.0.insert(incarnation, peer);
        self.0
            .retain(|known, peer| *known == incarnation || peer.replica != replica || peer.up);
    }

    /// The connection is gone.
    pub(crate) fn disconnect(&mut self, incarnation: Incarnation) {
        if let Some(peer) = self.0.get_mut(&incarnation) {
            peer.up = false;
            peer.status = None;
            peer.expects = None;
        }
    }

    /// Forgets this process.
    pub(crate) fn forget(&mut self, incarnation: Incarnation) {
        self.0.remove(&incarnation);
    }

    /// Forgets the processes that are neither connected nor members: they have left the view, or their view was dropped.
    pub(crate) fn keep(&mut self, is_member: impl Fn(Incarnation) -> bool) {
        self.0
            .retain(|incarnation, peer| peer.up || is_member(*incarnation));
    }

    /// The peer's listener refused a connection: the process is dead, unless it is connected (rule 10).
    pub(crate) fn refused(&mut self, incarnation: Incarnation) {
        if let Some(peer) = self.0.get_mut(&incarnation) {
            peer.dead = !peer.up;
        }
    }

    /// A message of this peer came in. Returns false if the peer is unknown.
    pub(crate) fn heard(&mut self, from: Incarnation, now: TimeMs) -> bool {
        let peer = self.0.get_mut(&from);
        peer.map(|peer| peer.heard_at = now).is_some()
    }

    /// Takes the peer's heartbeat. Returns true if its term or its leadership differs from the one before.
    pub(crate) fn said(&mut self, from: Incarnation, status: &Status) -> bool {
        let Some(peer) = self.0.get_mut(&from) else {
            return false; // it has been heard
        };
        let news = peer
            .status
            .as_ref()
            .is_none_or(|known| known.term != status.term || known.leader != status.leader);
        peer.promised = peer.promised.max(status.term);
        peer.status = Some(status.clone());
        if !status.history.is_nil() {
            peer.expects = None;
        }
        news
    }

    /// Takes the `Expects` message of a blank peer.
    pub(crate) fn expects(&mut self, from: Incarnation, expects: Expects) {
        if let Some(peer) = self.0.get_mut(&from) {
            peer.expects = Some(expects);
        }
    }

    /// Measures the round trip, if the peer's heartbeat returns a stamp of this process.
    pub(crate) fn measure(
        &mut self,
        from: Incarnation,
        me: Incarnation,
        outlook: &Outlook,
        now: TimeMs,
    ) {
        if let Some(peer) = self.0.get_mut(&from) {
            peer.round_trips.take(me, outlook, now);
        }
    }

    /// The peer is a foreign process. Returns true if the log does not name it yet.
    pub(crate) fn tell_foreign(&mut self, from: Incarnation) -> bool {
        let peer = self.0.get_mut(&from);
        peer.is_some_and(|peer| !std::mem::replace(&mut peer.told_foreign, true))
    }

    /// Moves the time at which each peer was heard last.
    pub(crate) fn shift_heard(&mut self, shift: impl Fn(&mut TimeMs)) {
        self.0
            .values_mut()
            .for_each(|peer| shift(&mut peer.heard_at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Uuid;

    fn number(n: u8) -> Uuid {
        Uuid([n; 16])
    }

    #[test]
    fn the_old_process_of_a_data_directory_is_forgotten_when_the_new_one_comes() {
        let (replica, old, new) = (
            ReplicaId(number(1)),
            Incarnation(number(2)),
            Incarnation(number(3)),
        );
        let mut peers = Peers::default();
        peers.connect(replica, old, 5);
        peers.said(old, &Status::default());
        peers.disconnect(old);
        assert!(peers.status_of(old).is_none() && !peers.is_up(old));
        peers.refused(old);
        assert!(peers.is_dead(replica));
        peers.connect(replica, new, 6);
        assert!(peers.get(old).is_none() && !peers.is_dead(replica));
        peers.refused(new);
        assert!(!peers.is_dead(replica), "it is connected");
    }

    #[test]
    fn another_term_is_news() {
        let from = Incarnation(number(2));
        let mut peers = Peers::default();
        peers.connect(ReplicaId(number(1)), from, 5);
        let status = Status::default();
        assert!(peers.said(from, &status));
        assert!(!peers.said(from, &status));
        let leader = true;
        assert!(peers.said(from, &Status { leader, ..status }));
    }
}
