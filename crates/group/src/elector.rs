//! What this member grants whoever seeks the office: pre-votes and promises (rules 2, 4). A promise is on disk before
//! anybody hears of it.

use trireme_mutants::{Mutant, planted};

use crate::event::{Action, HardState};
use crate::group::{Group, Role};
use crate::ids::{Ballot, Incarnation, Uuid};
use crate::message::{Message, Promise, Standing};

impl Group {
    pub(crate) fn pre_vote(&mut self, from: Incarnation, ballot: Ballot) {
        let in_office = matches!(self.role, Role::Sequencer(_)) && self.may_order();
        let missed = self.context.now() >= self.sequencer_heard_at + self.patience_ms()
            || self.peers.is_dead(self.promised.replica)
            || self.standing == Standing::Outside
            || self.sequencer().is_none() && self.promised.replica != self.my_replica();
        let granted =
            !in_office && missed && ballot.number > self.promised.number && !self.may_be_a_copy();
        let promised = self.promised;
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
        if ballot <= self.promised
            || (forced.is_some() && self.standing == Standing::Primary && !self.missing_majority())
        {
            let promised = self.promised;
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
            amnesiac: self.amnesiac,
            lost_views: self.has_lost_views(),
            proof: self.context.config().proof,
            withdrawn: self.withdrawals(),
        }
    }

    /// Accepts no lower ballot from here on.
    pub(crate) fn promise_ballot(&mut self, ballot: Ballot) {
        assert!(ballot > self.promised, "promises only rise");
        self.promised = ballot;
        self.matched = false;
        self.forked = false;
        self.agreed = 0;
        self.incoming.clear();
        // What waits for a promise to be on disk speaks of a lower ballot: void, however many come one after the other.
        self.held.clear();
        self.summary_sent_at = None;
        self.relieved(ballot);
        self.role = Role::Follower;
        self.sequencer_heard_at = self.context.now();
        self.reads.restart();
        self.out.push(Action::Persist(HardState {
            promised: ballot,
            configuration: self.log.committed().configuration.clone(),
        }));
    }

    /// Sends once everything promised so far is on disk (rule 4).
    pub(crate) fn send_persisted(&mut self, to: Incarnation, message: Message) {
        // Its callers have just promised: in truth it always waits.
        if self.persisted >= self.promised || planted(Mutant::PromiseNotPersisted) {
            self.send(to, message);
        } else {
            self.held.push((self.promised, to, message));
        }
    }

    pub(crate) fn persisted(&mut self, promised: Ballot) {
        self.persisted = self.persisted.max(promised);
        for (ballot, to, message) in std::mem::take(&mut self.held) {
            // A promise overtaken by a higher one is void.
            if ballot == self.promised && self.persisted >= ballot {
                self.send(to, message);
            } else if ballot == self.promised {
                self.held.push((ballot, to, message));
            }
        }
        self.count_promises();
        let peers = self.peers.names();
        self.tell_expectation(peers);
        self.pursue_founding();
    }
}
