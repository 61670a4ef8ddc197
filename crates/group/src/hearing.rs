//! The coordinator's work on other processes: connections, heartbeats, duplicate replicas (rule 14), and foreign
//! processes; and what it does when its own process has overslept, so that others' silence does not count.
//!
//! In: connections that come and go, statuses. Out: the component state and the catch-up that follow from them. A
//! duplicate replica and a foreign process have no say here.

use trireme_mutants::{Mutant, planted};

use crate::event::Action;
use crate::group::Group;
use crate::ids::{Incarnation, ReplicaId, TimeMs};
use crate::known::known;
use crate::message::{ComponentState, Message, Status};

impl Group {
    // ---- connections ----

    pub(crate) fn peer_up(&mut self, replica: ReplicaId, incarnation: Incarnation) {
        self.peers.connect(replica, incarnation, self.context.now());
        self.elections().forget_promise_of_duplicate(replica);
        self.elections().met(incarnation);
        if !self.known().has_duplicate(replica, incarnation) {
            self.acks.replaced(replica, incarnation);
        }
        let status = Message::Status(self.membership().status_for(incarnation));
        self.send(incarnation, status);
        self.membership().tell_expectation(vec![incarnation]);
        if self.membership().voice_of_term() == Some(incarnation) {
            // Submissions may be lost with the old connection, and no other message tells of that. They come before the
            // offer, by which the other side drops payloads that are not submitted.
            self.membership().resend_own(0);
        }
        let offer = (self.dissemination).offer_anew(known!(self), incarnation);
        self.membership().disseminate(offer);
    }

    pub(crate) fn peer_down(&mut self, incarnation: Incarnation) {
        let replica = self.peers.replica_of(incarnation);
        self.peers.disconnect(incarnation);
        // A new process of that replica has a say from now on.
        if let Some(next) = replica.and_then(|replica| self.known().voice(replica)) {
            self.elections().met(next);
        }
        if self.log.latest().member(incarnation).is_none() {
            self.peers.forget(incarnation);
            let has_seat = |replica| self.log.has_seat(replica);
            self.acks.keep(has_seat, |peer| self.peers.is_up(peer));
        }
        if let Some(leader) = self.role.leader_mut() {
            leader.replication.forget(incarnation);
            leader.changes.disconnected(incarnation);
        }
    }

    /// The stream to this peer broke off: makes the peer request the messages that it missed.
    pub(crate) fn peer_drained(&mut self, incarnation: Incarnation) {
        if let Some(leader) = self.role.leader_mut() {
            leader.replication.forget(incarnation);
        }
        // A status of another term, followed by the right one, makes the other side request a catch-up.
        let status = Message::Status(Status {
            term: Default::default(),
            ..self.membership().status_for(incarnation)
        });
        self.send(incarnation, status);
        let status = Message::Status(self.membership().status_for(incarnation));
        self.send(incarnation, status);
        self.membership().resend_own(0);
        let offer = (self.dissemination).offer_anew(known!(self), incarnation);
        self.membership().disseminate(offer);
    }

    /// This process did not run, or its machine slept. The silence of the others in that time proves nothing (rule 2),
    /// so all stamps move forward.
    pub(crate) fn overslept(&mut self, late_ms: TimeMs) {
        let now = self.context.now();
        let awake = |heard_at: &mut TimeMs| *heard_at = (*heard_at + late_ms).min(now);
        self.election_timer.shift_heard(awake);
        self.component.majority_mut().shift_heard(awake);
        self.peers.shift_heard(awake);
        if let Some(candidacy) = self.role.candidacy_mut() {
            candidacy.wait.shift(awake);
        }
    }

    // ---- heartbeats ----

    pub(crate) fn status(&mut self, from: Incarnation, status: Status) {
        let Some(replica) = self.peers.replica_of(from) else {
            return; // `message` has looked it up
        };
        let news = self.peers.said(from, &status);
        self.meet_own_duplicate(from, &status);
        if self.known().is_foreign(from) || self.known().has_duplicate(replica, from) {
            return;
        }
        self.replica()
            .ack(from, status.term, status.ack, status.commit);
        if self.context.config().measures {
            let (me, now) = (self.me(), self.context.now());
            self.peers.measure(from, me, &status.outlook, now);
        }
        self.membership().tell_split(&status);
        if status.leader || !planted(Mutant::FollowersWordIgnored) {
            self.membership().give_up_overrides(from);
        }
        let same_history =
            self.log.committed().history.is_nil() || self.log.committed().history == status.history;
        if !status.leader
            || status.term.replica != replica
            || status.component_state == ComponentState::Outside
        {
            return;
        }
        if !self.component.is_outside() && !same_history {
            return;
        }
        if !self.membership().heed_overrides(from, &status) {
            // A member of the configuration may be about to commit the forced view that it lacks. It needs this
            // member's acknowledgement for that, in a higher term than its own.
            if status.term < self.vote.promised() && self.log.has_seat(replica) {
                let promised = self.vote.promised();
                self.send(from, Message::Refuse { promised });
            }
            return;
        }
        if !self.concerns_me(&status) {
            // This process is not, or no longer, in that component: it requests admission.
            if self.component.is_primary()
                && self.log.committed().configuration.number < status.configuration_number
            {
                self.membership().declare_non_primary();
            }
            if self.component.is_primary()
                || !status
                    .overrides
                    .starts_with(self.branches().binding_overrides())
            {
                return;
            }
        }
        self.leader_speaks(from, &status, news);
    }

    /// Takes the heartbeat of a leader whose component this process is in, or may join.
    fn leader_speaks(&mut self, from: Incarnation, status: &Status, news: bool) {
        if status.term < self.vote.promised() {
            let promised = self.vote.promised();
            self.send(from, Message::Refuse { promised });
            return;
        }
        if !self.replica().accept_term(from, status.term) {
            return;
        }
        if self.vote.is_amnesiac() && self.log.tail().end() > 0 {
            // The leader's log holds everything that this replica acknowledged and has forgotten, and the forced view with
            // which its term may have begun (rule 4).
            self.vote.will_be_intact_at(status.end);
        }
        if status.component_state == ComponentState::Primary {
            // A leader whose log does not continue this one does not count as a majority.
            if !self.matching.is_forked() {
                self.component.majority_mut().heard(self.context.now());
            }
        } else if self.component.is_primary()
            && status.configuration_number >= self.log.committed().configuration.number
        {
            // The status is not older than the view that this member has committed.
            self.membership().declare_non_primary();
        }
        // While it fetches a bulk payload, the leader may have sent a full window: no records are lost.
        let stalled = (self.matching).has_stalled(status.end, self.log.tail().end())
            && !self.membership().awaits_large();
        if news {
            self.matching.ask_at_once();
            self.membership().go_on_leaving();
        }
        if news || !self.matching.is_matched() || stalled {
            self.membership().ask_catch_up(from);
        }
        self.replica().learn_commit(status.commit);
        self.membership().ask_to_join();
    }

    /// True if the sender's component includes this process: as a member, or by a configuration that the sender has not
    /// committed yet. Also true for a process outside of every view.
    fn concerns_me(&self, status: &Status) -> bool {
        let me = self.me();
        status.members.contains(&me)
            || self.log.latest().member(me).is_some()
                && status.overrides == self.log.committed().overrides
                && status.configuration_number < self.log.latest().number
            || self.component.is_outside()
    }

    // ---- duplicate replicas ----

    /// True for a message in which a duplicate replica acts or votes for a replica that another process speaks for.
    pub(crate) fn is_a_duplicates(&self, from: Incarnation, message: &Message) -> bool {
        let duplicate = || {
            let peer = self.peers.get(from);
            peer.is_some_and(|peer| self.known().has_duplicate(peer.replica, from))
        };
        message.speaks_for_replica() && duplicate() && !planted(Mutant::DuplicatesVote)
    }

    /// The configuration lists another, living process of this replica id. This process then has no vote, and keeps
    /// silent, until a view lists it, even if the other one disconnects.
    fn meet_own_duplicate(&mut self, from: Incarnation, status: &Status) {
        let duplicate = self.peers.replica_of(from) == Some(self.my_replica());
        let seated = self.log.latest().member(self.me()).is_some();
        if !duplicate || seated || self.component.is_copy() || !status.members.contains(&from) {
            return;
        }
        self.component.found_to_be_a_copy();
        let reason = format!(
            "process {from}, which is in a view, runs with this node's replica id {}: this is a copied data directory; \
             remove its trireme state files and grastate.dat, then restart it",
            self.my_replica().0
        );
        self.out.push(Action::Refused { reason });
    }

    // ---- foreign processes ----

    /// Takes a message of a foreign process. Its positions, terms and promises mean nothing here. Only its statuses
    /// count, and its join requests, which are refused with a reason.
    pub(crate) fn foreign_message(&mut self, from: Incarnation, message: Message) {
        match message {
            Message::Status(status) => self.status(from, status),
            Message::Join(join) => self.leader().join_requested(from, join),
            _ => {
                let own = self.log.committed().history;
                let theirs = self.peers.status_of(from).map(|s| s.history);
                if self.peers.tell_foreign(from) {
                    let theirs = theirs.unwrap_or_default();
                    let text = format!(
                        "ignoring {from}, which is in the cluster {theirs} while this node is in {own}: give the two \
                         clusters different wsrep_cluster_name and addresses"
                    );
                    self.out.note(text);
                }
            }
        }
    }
}
