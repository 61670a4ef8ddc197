//! This member as an elector (rules 2, 4): it grants pre-votes and promises, and decides when it stands itself.
//!
//! In: pre-votes, prepares, the leader's silence. Out: replies and promises. A promise is on disk before it, or an
//! acknowledgement in its term, is sent; a heartbeat may name the term earlier.
//!
//! A leader is missing for a pre-vote if it is silent (`election_timer`), if its listener refuses connections, if no
//! process of its replica is connected, if the leader has no seat, and for a process outside of a component. A member
//! stands itself for the first two, or if the leader has no seat.

use trireme_mutants::{Mutant, planted};

use crate::branches::Branches;
use crate::election_timer::ElectionTimer;
use crate::elections::Elections;
use crate::event::Action;
use crate::ids::{Incarnation, ReplicaId, Term, TimeMs, Uuid};
use crate::message::{Message, Preference, Promise};
use crate::role::Role;
use crate::vote::Vote;
use crate::yielding::is_automatic;

impl Elections<'_> {
    pub(crate) fn pre_vote(&mut self, from: Incarnation, term: Term) {
        let leads = self.role.leader();
        let is_leading = leads.is_some_and(|leader| leader.may_order(self.branches()));
        let is_lonely = leads.is_some() && self.component.is_lonely(self.known());
        let holder = self.vote.promised().replica;
        let missed = is_lonely
            || is_gone(self.branches(), holder)
            || (self.election_timer).is_missed(self.context.now(), self.context.config())
            || self.component.is_outside()
            || self.known().voice(holder).is_none() && holder != self.my_replica();
        // An operator has decided, and the decision takes a moment.
        let is_forced = (self.role.candidacy()).is_some_and(|candidacy| candidacy.forced.is_some());
        let granted = !is_leading
            && missed
            && !is_forced
            && term.number > self.vote.promised().number
            && !self.branches().may_be_a_copy();
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
        if term.replica != replica || self.branches().may_be_a_copy() {
            return;
        }
        if term <= self.vote.promised() || (forced.is_some() && !self.may_promise_override()) {
            let promised = self.vote.promised();
            self.send(from, Message::Refuse { promised });
            return;
        }
        let asks = (self.role.candidacy()).is_some_and(|candidacy| candidacy.promises.is_some());
        if asks && !planted(Mutant::DeferralOutlivesAttempt) {
            self.election_timer.was_cut_short();
        }
        self.tell_override_cut_short(replica);
        self.promise_term(term);
        let promise = self.own_promise(term);
        self.send_persisted(from, Message::Promise(promise));
    }

    /// Tells the operator that the forced view on which this member was about to decide will not be made.
    fn tell_override_cut_short(&mut self, by: ReplicaId) {
        let forced = self.role.candidacy().and_then(|candidacy| candidacy.forced);
        if forced.is_some_and(|id| !is_automatic(&id)) {
            let text = format!(
                "pc.bootstrap had no effect: replica {} stood for leadership meanwhile; if there is still no primary \
                 component, repeat it",
                by.0
            );
            self.out.note(text);
        }
    }

    /// False for a primary member that hears a majority: an override would take that majority's commits away.
    pub(crate) fn may_promise_override(&self) -> bool {
        let timeout_ms = self.context.config().leader_timeout_ms;
        let committed = &self.log.committed().configuration;
        !self.component.is_primary() || !self.known().hears_majority(timeout_ms, committed)
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
            lost_views: self.vote.has_lost_views(),
            proof: self.context.config().proof,
            withdrawn: self.dissemination.withdrawals(self.me()),
        }
    }

    /// Promises this term: accepts no lower one from now on.
    pub(crate) fn promise_term(&mut self, term: Term) {
        self.vote.promise(term);
        self.matching.promised();
        if let Some(leader) = self.role.leader() {
            // If this leader was transferring leadership to another replica, the transfer has succeeded.
            let elsewhere = term.replica != self.my_replica();
            let is_handed = leader.is_closing() && elsewhere;
            (self.out).count(|c| c.leaderships_handed += u64::from(is_handed));
        }
        self.role.follow();
        self.election_timer.promised(self.context.now());
        self.reads.restart();
        self.persist_promise();
    }

    /// Neither leads nor stands any more, in the same term. The leader's log is another member's to tell of: this one
    /// would answer a current read with log end 0.
    pub(crate) fn step_aside(&mut self) {
        if self.role.is_leader() {
            self.matching.part();
        }
        self.role.follow();
    }

    /// Asks for the promise to be written down.
    pub(crate) fn persist_promise(&mut self) {
        let promised = self.vote.promised();
        self.out.push(Action::Persist { promised });
    }

    /// Sends once everything promised so far is on disk (rule 4).
    pub(crate) fn send_persisted(&mut self, to: Incarnation, message: Message) {
        if let Some(message) = self.vote.hold(to, message) {
            self.send(to, message);
        }
    }

    /// Returns the time at which this follower stands, if it hears no leader before; None: never.
    pub(crate) fn stands_at(&self) -> Option<TimeMs> {
        stands_at(self.branches(), self.role, self.vote, self.election_timer)
    }

    /// The process rank; see [`rank`].
    pub(crate) fn rank(&self) -> TimeMs {
        rank(self.branches(), self.vote.promised().replica)
    }
}

/// Returns the time at which a follower stands, if it hears no leader before; None: never.
pub(crate) fn stands_at(
    branches: Branches,
    role: &Role,
    vote: &Vote,
    election_timer: &ElectionTimer,
) -> Option<TimeMs> {
    if !role.is_follower() || !may_stand(branches) {
        return None;
    }
    let holder = vote.promised().replica;
    let is_gone = is_gone(branches, holder);
    let rank = rank(branches, holder);
    Some(election_timer.stands_at(branches.context.config(), is_gone, rank))
}

/// True if the holder of the promised term is dead, or has no seat in the newest configuration.
fn is_gone(branches: Branches, holder: ReplicaId) -> bool {
    branches.peers.is_dead(holder) || branches.log.latest().replica(holder).is_none()
}

/// True for a voter of the newest configuration. A restarted process counts as its replica's member there (rule 14).
fn may_stand(branches: Branches) -> bool {
    let component = branches.component;
    !component.is_outside()
        && !branches.is_overridden()
        && !component.is_leaving()
        && !branches.may_be_a_copy()
        && branches.own_seat().is_some_and(|m| m.weight > 0)
}

/// The process rank: candidates stand one after another, in this order. The missed leader, `holder`, is not counted,
/// and neither is a member without a vote.
fn rank(branches: Branches, holder: ReplicaId) -> TimeMs {
    let (own, members) = (branches.own_seat(), &branches.log.latest().members);
    let before = members
        .iter()
        .take_while(|m| own.is_some_and(|own| own.incarnation != m.incarnation));
    let index = before
        .filter(|m| m.replica != holder && m.weight > 0)
        .count();
    let last = match branches.context.config().preference {
        Preference::Never => members.len(),
        Preference::Auto | Preference::Prefer => 0,
    };
    (index + last) as TimeMs
}
