//! What this member grants whoever seeks the office: pre-votes and promises (rules 2, 4). A promise is on disk before
//! anybody hears of it.

use trireme_mutants::{Mutant, planted};

use crate::event::{Action, HardState};
use crate::group::{Group, Role};
use crate::ids::{Ballot, Incarnation};
use crate::message::Message;

impl Group {
    /// Accepts no lower ballot from here on.
    pub(crate) fn promise_ballot(&mut self, ballot: Ballot) {
        assert!(ballot > self.promised, "promises only rise");
        self.promised = ballot;
        self.matched = false;
        self.forked = false;
        self.agreed = 0;
        self.incoming.clear();
        self.summary_sent_at = None;
        self.relieved(ballot);
        self.role = Role::Follower;
        self.sequencer_heard_at = self.now;
        self.reads.restart();
        self.out.push(Action::Persist(HardState {
            promised: ballot,
            configuration: self.committed.configuration.clone(),
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
        let peers = self.peers.keys().copied().collect();
        self.tell_expectation(peers);
        self.pursue_founding();
    }
}
