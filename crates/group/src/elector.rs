//! What this member grants whoever seeks the office: pre-votes and promises (rules 2, 4). A promise is on disk before
//! anybody hears of it.

use crate::event::{Action, HardState};
use crate::group::Group;
use crate::ids::{Ballot, Incarnation, Uuid};
use crate::message::{Message, Promise};

impl Group {
    pub(crate) fn pre_vote(&mut self, from: Incarnation, ballot: Ballot) {
        let in_office = self.role.is_leader() && self.may_order();
        let missed = (self.election_timer).is_missed(self.context.now(), self.context.config())
            || self.peers.is_dead(self.vote.promised().replica)
            || self.component.is_outside()
            || self.sequencer().is_none() && self.vote.promised().replica != self.my_replica();
        let granted = !in_office
            && missed
            && ballot.number > self.vote.promised().number
            && !self.may_be_a_copy();
        let promised = self.vote.promised();
        if ballot.number <= promised.number {
            self.send(from, Message::Refuse { promised });
        } else {
            self.send(from, Message::PreVoteReply { ballot, granted });
        }
    }

    pub(crate) fn prepare(&mut self, from: Incarnation, ballot: Ballot, forced: Option<Uuid>) {
        let Some(replica) = self.peers.replica_of(from) else {
            return; // `message` has looked it up
        };
        if ballot.replica != replica || self.may_be_a_copy() {
            return;
        }
        if ballot <= self.vote.promised()
            || (forced.is_some() && self.component.is_primary() && !self.missing_majority())
        {
            let promised = self.vote.promised();
            self.send(from, Message::Refuse { promised });
            return;
        }
        self.promise_ballot(ballot);
        let promise = self.own_promise(ballot);
        self.send_persisted(from, Message::Promise(promise));
    }

    fn missing_majority(&self) -> bool {
        !self.known().hears_majority(
            self.context.config().office_timeout_ms,
            &self.log.committed().configuration,
        )
    }

    pub(crate) fn own_promise(&self, ballot: Ballot) -> Promise {
        let committed = self.log.committed();
        let mut configurations = Vec::new();
        if !committed.configuration.members.is_empty() {
            // The committed one stands for its position or any later one up to the commit point.
            configurations.push((committed.position, committed.configuration.clone()));
        }
        let later = self.log.uncommitted();
        configurations
            .extend(later.map(|(position, configuration)| (position, configuration.clone())));
        Promise {
            ballot,
            summary: self.log.summary(),
            configurations,
            amnesiac: self.vote.is_amnesiac(),
            lost_views: self.has_lost_views(),
            proof: self.context.config().proof,
            withdrawn: self.dissemination.withdrawals(self.me()),
        }
    }

    /// Accepts no lower ballot from here on.
    pub(crate) fn promise_ballot(&mut self, ballot: Ballot) {
        self.vote.promise(ballot);
        self.matching.promised();
        self.relieved(ballot);
        self.role.follow();
        self.election_timer.promised(self.context.now());
        self.reads.restart();
        self.out.push(Action::Persist(HardState {
            promised: ballot,
            configuration: self.log.committed().configuration.clone(),
        }));
    }

    /// Sends once everything promised so far is on disk (rule 4).
    pub(crate) fn send_persisted(&mut self, to: Incarnation, message: Message) {
        if let Some(message) = self.vote.hold(to, message) {
            self.send(to, message);
        }
    }

    pub(crate) fn persisted(&mut self, promised: Ballot) {
        for (to, message) in self.vote.persist(promised) {
            self.send(to, message);
        }
        self.count_promises();
        let peers = self.peers.names();
        self.tell_expectation(peers);
        self.pursue_founding();
    }
}
