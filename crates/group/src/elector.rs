//! The coordinator's part as an elector (rules 2, 4): grants pre-votes and promises, and decides when this member
//! stands itself.
//!
//! In: pre-votes, prepares, the leader's silence. Out: replies and promises. A promise is on disk before any other
//! process hears of it.

use crate::event::{Action, HardState};
use crate::group::Group;
use crate::ids::{Incarnation, ReplicaId, Term, TimeMs, Uuid};
use crate::message::{Message, Preference, Promise};

impl Group {
    pub(crate) fn pre_vote(&mut self, from: Incarnation, term: Term) {
        let is_leading = self.role.is_leader() && self.may_order();
        let missed = (self.election_timer).is_missed(self.context.now(), self.context.config())
            || self.peers.is_dead(self.vote.promised().replica)
            || self.component.is_outside()
            || self.leader().is_none() && self.vote.promised().replica != self.my_replica();
        let granted = !is_leading
            && missed
            && term.number > self.vote.promised().number
            && !self.may_be_a_copy();
        let promised = self.vote.promised();
        if term.number <= promised.number {
            self.send(from, Message::Refuse { promised });
        } else {
            self.send(from, Message::PreVoteReply { term, granted });
        }
    }

    pub(crate) fn prepare(&mut self, from: Incarnation, term: Term, forced: Option<Uuid>) {
        let Some(replica) = self.peers.replica_of(from) else {
            return; // `message` has looked it up
        };
        if term.replica != replica || self.may_be_a_copy() {
            return;
        }
        if term <= self.vote.promised()
            || (forced.is_some() && self.component.is_primary() && !self.missing_majority())
        {
            let promised = self.vote.promised();
            self.send(from, Message::Refuse { promised });
            return;
        }
        self.promise_term(term);
        let promise = self.own_promise(term);
        self.send_persisted(from, Message::Promise(promise));
    }

    fn missing_majority(&self) -> bool {
        !self.known().hears_majority(
            self.context.config().leader_timeout_ms,
            &self.log.committed().configuration,
        )
    }

    pub(crate) fn own_promise(&self, term: Term) -> Promise {
        let committed = self.log.committed();
        let mut configurations = Vec::new();
        if !committed.configuration.members.is_empty() {
            // The committed configuration is in force up to the commit point, so the promise names it there.
            configurations.push((committed.position, committed.configuration.clone()));
        }
        let later = self.log.uncommitted();
        configurations
            .extend(later.map(|(position, configuration)| (position, configuration.clone())));
        Promise {
            term,
            summary: self.log.summary(),
            configurations,
            amnesiac: self.vote.is_amnesiac(),
            lost_views: self.has_lost_views(),
            proof: self.context.config().proof,
            withdrawn: self.dissemination.withdrawals(self.me()),
        }
    }

    /// Promises this term: accepts no lower one from now on.
    pub(crate) fn promise_term(&mut self, term: Term) {
        self.vote.promise(term);
        self.matching.promised();
        self.relieved(term);
        self.role.follow();
        self.election_timer.promised(self.context.now());
        self.reads.restart();
        self.out.push(Action::Persist(HardState {
            promised: term,
            configuration: self.log.committed().configuration.clone(),
        }));
    }

    /// Sends once everything promised so far is on disk (rule 4).
    pub(crate) fn send_persisted(&mut self, to: Incarnation, message: Message) {
        if let Some(message) = self.vote.hold(to, message) {
            self.send(to, message);
        }
    }

    pub(crate) fn persisted(&mut self, promised: Term) {
        for (to, message) in self.vote.persist(promised) {
            self.send(to, message);
        }
        self.count_promises();
        let peers = self.peers.names();
        self.tell_expectation(peers);
        self.pursue_founding();
    }

    // ---- standing for election ----

    /// Returns the time at which this follower stands, if it hears no leader before; None: never.
    pub(crate) fn stands_at(&self) -> Option<TimeMs> {
        let follows = self.role.is_follower();
        (follows && self.may_stand()).then(|| {
            let holder = self.vote.promised().replica;
            let is_gone = self.peers.is_dead(holder) || self.log.latest().replica(holder).is_none();
            (self.election_timer).stands_at(self.context.config(), is_gone, self.rank())
        })
    }

    /// True for a voter of the newest configuration. A restarted process counts as its replica's member there (rule
    /// 14).
    fn may_stand(&self) -> bool {
        !self.component.is_outside()
            && !self.branches().is_overridden()
            && !self.component.is_leaving()
            && !self.may_be_a_copy()
            && self.branches().own_seat().is_some_and(|m| m.weight > 0)
    }

    /// The process rank: candidates stand one after another, in this order. The missed leader is not counted.
    pub(crate) fn rank(&self) -> TimeMs {
        let (own, holder) = (self.branches().own_seat(), self.vote.promised().replica);
        let members = &self.log.latest().members;
        let before = members
            .iter()
            .take_while(|m| own.is_some_and(|own| own.incarnation != m.incarnation));
        let index = before.filter(|m| m.replica != holder).count();
        let last = match self.context.config().preference {
            Preference::Never => members.len(),
            Preference::Auto | Preference::Prefer => 0,
        };
        (index + last) as TimeMs
    }

    /// The replica answers an election. If it is the leader that this member replaced, the replacement was needless.
    pub(crate) fn was_alive(&mut self, replica: ReplicaId) {
        let now = self.context.now();
        let Some(leader) = self.role.leader_mut() else {
            return;
        };
        let recent_ms = self.context.config().leader_timeout_ms;
        if leader.was_needless(replica, now, recent_ms) {
            self.out.count(|c| c.leaderships_needless += 1);
        }
    }
}
