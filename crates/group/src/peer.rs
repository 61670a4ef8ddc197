//! Other processes, as their connections come and go.

use crate::configuration::Member;
use crate::founding::Expects;
use crate::group::Group;
use crate::ids::{Incarnation, ReplicaId, TimeMs};
use crate::known::known;
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

impl Group {
    /// The members of the view in force that were not heard of for so long, and for how long each.
    pub fn late_members(
        &self,
        now: TimeMs,
        margin_ms: TimeMs,
    ) -> impl Iterator<Item = (&Member, TimeMs)> {
        let members = self.log.committed().configuration.members.iter();
        let others = members.filter(|member| member.incarnation != self.me());
        others.filter_map(move |member| {
            let heard_at = self.peers.get(member.incarnation)?.heard_at;
            let silent_ms = now.saturating_sub(heard_at);
            (silent_ms >= margin_ms).then_some((member, silent_ms))
        })
    }

    pub(crate) fn peer_up(&mut self, replica: ReplicaId, incarnation: Incarnation) {
        self.peers.connect(replica, incarnation, self.context.now());
        self.forget_promise_of_twin(replica);
        if !self.known().has_twin(replica, incarnation) {
            self.acks.replaced(replica, incarnation);
        }
        let status = Message::Status(self.own_status());
        self.send(incarnation, status);
        self.tell_expectation(vec![incarnation]);
        let offer = (self.dissemination).offer_anew(known!(self), incarnation);
        self.disseminate(offer);
        if self.sequencer() == Some(incarnation) {
            // What went with the old connection, of which nobody says that it is lost.
            self.resend_own(0);
        }
    }

    pub(crate) fn peer_down(&mut self, incarnation: Incarnation) {
        self.peers.disconnect(incarnation);
        if self.log.latest().member(incarnation).is_none() {
            self.peers.forget(incarnation);
            let has_seat = |replica| self.log.has_seat(replica);
            self.acks.gone(incarnation, has_seat);
        }
        if let Some(leader) = self.role.leader_mut() {
            leader.replication.forget(incarnation);
        }
    }

    /// The stream to this peer broke off; it asks again for what it missed.
    pub(crate) fn peer_drained(&mut self, incarnation: Incarnation) {
        if let Some(leader) = self.role.leader_mut() {
            leader.replication.forget(incarnation);
        }
        // A status after none makes the other side ask.
        let status = Message::Status(Status {
            ballot: Default::default(),
            ..self.own_status()
        });
        self.send(incarnation, status);
        let status = Message::Status(self.own_status());
        self.send(incarnation, status);
        let offer = (self.dissemination).offer_anew(known!(self), incarnation);
        self.disseminate(offer);
        self.resend_own(0);
    }
}
