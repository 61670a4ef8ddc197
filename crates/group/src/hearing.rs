//! Other processes: as their connections come and go, what their heartbeats say, and those whose word does not count here: a
//! second one on one data directory (rule 14), and those of another cluster.

use trireme_mutants::{Mutant, planted};

use crate::configuration::Member;
use crate::group::Group;
use crate::ids::{Incarnation, ReplicaId, TimeMs};
use crate::known::known;
use crate::message::{Message, Standing, Status};

impl Group {
    // ---- connections ----

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
        if self.leader() == Some(incarnation) {
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

    // ---- heartbeats ----

    pub(crate) fn status(&mut self, from: Incarnation, status: Status) {
        let Some(replica) = self.peers.replica_of(from) else {
            return; // `message` has looked it up
        };
        let news = self.peers.said(from, &status);
        self.meet_own_twin(from, &status);
        if self.known().is_foreign(from) || self.known().has_twin(replica, from) {
            return;
        }
        self.ack(from, status.ballot, status.ack);
        if self.context.config().measures {
            let (me, now) = (self.me(), self.context.now());
            self.peers.measure(from, me, &status.outlook, now);
        }
        self.tell_split(&status);
        let same_history =
            self.log.committed().history.is_nil() || self.log.committed().history == status.history;
        if !status.leader
            || status.ballot.replica != replica
            || status.standing == Standing::Outside
        {
            return;
        }
        if !self.component.is_outside() && !same_history {
            return;
        }
        if !self.heed_overrides(from, &status) {
            // Who has a seat may be about to commit the override that it lacks, and needs this member's word: in a
            // higher ballot than its own.
            if status.ballot < self.vote.promised() && self.log.has_seat(replica) {
                let promised = self.vote.promised();
                self.send(from, Message::Refuse { promised });
            }
            return;
        }
        if !self.concerns_me(&status) {
            // A component that this process is not in (any more): it asks for admission.
            if self.component.is_primary()
                && self.log.committed().configuration.number < status.configuration_number
            {
                self.declare_non_primary();
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

    /// A heartbeat of somebody that leads a component that this process is in, or may come into.
    fn leader_speaks(&mut self, from: Incarnation, status: &Status, news: bool) {
        if status.ballot < self.vote.promised() {
            let promised = self.vote.promised();
            self.send(from, Message::Refuse { promised });
            return;
        }
        if !self.accept_ballot(from, status.ballot) {
            return;
        }
        if self.vote.is_amnesiac() && self.log.tail().end() > 0 {
            // Whatever this replica acknowledged and has forgotten is in a leader's log (rule 4).
            self.vote.will_be_intact_at(status.end);
        }
        if status.standing == Standing::Primary {
            // One whose log is no continuation of this one is not this node's primary.
            if !self.matching.is_forked() {
                self.component.majority_mut().heard(self.context.now());
            }
        } else if self.component.is_primary()
            && status.configuration_number >= self.log.committed().configuration.number
        {
            // Not an old word from before the view that this member knows already.
            self.declare_non_primary();
        }
        let stalled = (self.matching).has_stalled(status.end, self.log.tail().end());
        if news {
            self.matching.ask_at_once();
            self.go_on_leaving();
        }
        if news || !self.matching.is_matched() || stalled {
            self.ask_catch_up(from);
        }
        if self.matching.is_matched() {
            self.learn_commit(status.commit);
        }
        self.ask_to_join();
    }

    /// True if the sender's component counts on this process: it is a member there, or it knows of
    /// a membership that the sender has not committed yet.
    fn concerns_me(&self, status: &Status) -> bool {
        let me = self.me();
        status.members.contains(&me)
            || self.log.latest().member(me).is_some()
                && status.overrides == self.log.committed().overrides
                && status.configuration_number < self.log.latest().number
            || self.component.is_outside()
    }

    // ---- two processes on one data directory ----

    /// True for a message that acts or votes for a replica that another process speaks for.
    pub(crate) fn is_a_twins(&self, from: Incarnation, message: &Message) -> bool {
        let twin = || {
            let peer = self.peers.get(from);
            peer.is_some_and(|peer| self.known().has_twin(peer.replica, from))
        };
        message.speaks_for_replica() && twin() && !planted(Mutant::TwinsVote)
    }

    /// True if this process may be one on a copied data directory: it neither votes nor seeks leadership.
    pub(crate) fn may_be_a_copy(&self) -> bool {
        let copy = self.component.is_copy() || self.known().has_twin(self.my_replica(), self.me());
        copy && !planted(Mutant::TwinsVote)
    }

    /// The own data directory's seat is another, living, process's: this one has no vote until a view seats it, also
    /// when that one is not connected any more.
    pub(crate) fn meet_own_twin(&mut self, from: Incarnation, status: &Status) {
        let twin = self.peers.replica_of(from) == Some(self.my_replica());
        let seated = self.log.latest().member(self.me()).is_some();
        if !twin || seated || self.component.is_copy() || !status.members.contains(&from) {
            return;
        }
        self.component.found_to_be_a_copy();
        let text = format!(
            "process {from}, which is in a view, runs with this node's replica id {}: this is a copied data directory, and \
             has no vote; remove its trireme state files and grastate.dat",
            self.my_replica().0
        );
        self.out.note(text);
    }

    // ---- another cluster ----

    /// Its positions, ballots and promises mean nothing here. What it is, it may go on to say; and it may ask for
    /// admission, to be told why not.
    pub(crate) fn foreign_message(&mut self, from: Incarnation, message: Message) {
        match message {
            Message::Status(status) => self.status(from, status),
            Message::Join(join) => self.join_requested(from, join),
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
