//! Other processes, as their connections come and go.

use crate::configuration::Member;
use crate::founding::Expects;
use crate::group::{Group, Role};
use crate::ids::{Ballot, Incarnation, Position, ReplicaId, TimeMs};
use crate::message::{Message, Status};
use crate::round_trips::RoundTrips;

/// A peer process, connected now or once.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Peer {
    pub replica: ReplicaId,
    pub up: bool,
    /// Its listener refused a connection (rule 10).
    pub dead: bool,
    pub heard_at: TimeMs,
    pub status: Option<Status>,
    /// It has no history, and this is what it waits for.
    pub expects: Option<Expects>,
    pub round_trips: RoundTrips,
    /// It is in another cluster, and that was said.
    pub told_foreign: bool,
}

/// A member's latest acknowledgement.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct PeerAck {
    pub incarnation: Incarnation,
    pub ballot: Ballot,
    pub position: Position,
}

impl Group {
    /// The members of the view in force that were not heard of for so long, and for how long each.
    pub fn late_members(
        &self,
        now: TimeMs,
        margin_ms: TimeMs,
    ) -> impl Iterator<Item = (&Member, TimeMs)> {
        let members = self.committed.configuration.members.iter();
        let others = members.filter(|member| member.incarnation != self.me());
        others.filter_map(move |member| {
            let heard_at = self.peers.get(&member.incarnation)?.heard_at;
            let silent_ms = now.saturating_sub(heard_at);
            (silent_ms >= margin_ms).then_some((member, silent_ms))
        })
    }

    pub(crate) fn peer_up(&mut self, replica: ReplicaId, incarnation: Incarnation) {
        let peer = Peer {
            replica,
            up: true,
            heard_at: self.context.now(),
            ..Peer::default()
        };
        self.peers.insert(incarnation, peer);
        self.forget_promise_of_twin(replica);
        let twin = self.has_twin(replica, incarnation);
        if !twin
            && self
                .acks
                .get(&replica)
                .is_some_and(|ack| ack.incarnation != incarnation)
        {
            self.acks.remove(&replica);
        }
        // Its old process is gone: a data directory belongs to one process at a time (rule 14).
        self.peers
            .retain(|known, peer| *known == incarnation || peer.replica != replica || peer.up);
        let status = Message::Status(self.own_status());
        self.send(incarnation, status);
        self.tell_expectation(vec![incarnation]);
        self.offer_anew(incarnation);
    }

    pub(crate) fn peer_down(&mut self, incarnation: Incarnation) {
        if let Some(peer) = self.peers.get_mut(&incarnation) {
            peer.up = false;
            peer.status = None;
            peer.expects = None;
        }
        if self.latest().member(incarnation).is_none() {
            self.peers.remove(&incarnation);
            let (latest, committed) = (self.latest().clone(), &self.committed.configuration);
            let seated = |replica| {
                [&latest, committed]
                    .iter()
                    .any(|c| c.replica(replica).is_some())
            };
            // Whoever has no seat says it again when it is back: else every id that ever came would be kept.
            self.acks
                .retain(|replica, ack| ack.incarnation != incarnation || seated(*replica));
        }
        if let Role::Sequencer(office) = &mut self.role {
            office.forget(incarnation);
        }
    }

    /// Its listener refused a connection.
    pub(crate) fn peer_dead(&mut self, incarnation: Incarnation) {
        if let Some(peer) = self.peers.get_mut(&incarnation) {
            peer.dead = !peer.up;
        }
    }

    /// The replica's process is known to be gone.
    pub(crate) fn is_dead(&self, replica: ReplicaId) -> bool {
        let mut peers = self.peers.values();
        peers.any(|peer| peer.replica == replica && peer.dead)
    }

    /// The stream to this peer broke off; it asks again for what it missed.
    pub(crate) fn peer_drained(&mut self, incarnation: Incarnation) {
        if let Role::Sequencer(office) = &mut self.role {
            office.forget(incarnation);
        }
        // A status after none makes the other side ask.
        let status = Message::Status(Status {
            ballot: Default::default(),
            ..self.own_status()
        });
        self.send(incarnation, status);
        let status = Message::Status(self.own_status());
        self.send(incarnation, status);
        self.offer_anew(incarnation);
        self.resend_own(0);
    }
}
