//! The candidate: a new term with the same membership (rules 1-5).
//!
//! A member that misses its leader first asks whether a majority misses the leader, too (pre-vote). Then it asks for
//! promises. The owner of the best log among the promisers must lead: a candidate with a worse log asks that owner to
//! take leadership. So no candidate ever fetches entries.

use std::collections::BTreeSet;

use trireme_mutants::{Mutant, planted};

use crate::configuration::{Configuration, Member};
use crate::elections::{Elections, Won};
use crate::entry::Entry;
use crate::forced_wait::ForcedWait;
use crate::ids::{Incarnation, Position, ReplicaId, Term, TimeMs, Uuid};
use crate::message::{Message, Promise};
use crate::promises::Promises;
use crate::yielding::{is_automatic, yields};

/// An attempt to become leader.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Candidacy {
    pub(crate) term: Term,
    pub(crate) started_at: TimeMs,
    /// Pre-votes, by replica.
    granted: BTreeSet<ReplicaId>,
    /// None while pre-voting.
    pub(crate) promises: Option<Promises>,
    pub(crate) forced: Option<Uuid>,
    /// The wait of a candidate for a forced view.
    pub(crate) wait: ForcedWait,
    /// The replica of the leader that this candidate missed.
    missed: Option<ReplicaId>,
}

impl Elections<'_> {
    /// Starts an attempt if the leader is missed (rule 2).
    #[must_use = "the winner must lead"]
    pub(crate) fn watch_leader(&mut self) -> Option<Won> {
        if self.role.is_candidate() {
            self.watch_attempt()
        } else if self.stands_at().is_some_and(|at| self.context.now() >= at) {
            self.stand()
        } else {
            None
        }
    }

    fn watch_attempt(&mut self) -> Option<Won> {
        self.watch_forced();
        let mut won = None;
        if self.role.candidacy()?.wait.over_at().is_some() {
            won = self.count_promises();
        }
        if won.is_none() && self.has_heard_around() {
            won = self.count_promises(); // the wait for evidence may be over (rule 4)
        }
        if won.is_some() {
            return won;
        }
        let attempt_ms = self.election_timer.attempt_ms();
        let began_at = |c: &Candidacy| match c.forced {
            Some(_) => c.wait.over_at(),
            None => Some(c.started_at),
        };
        let began_at = self.role.candidacy().and_then(began_at);
        if began_at.is_some_and(|at| self.context.now() >= at + attempt_ms) {
            self.give_up();
        }
        None
    }

    /// Called by the tick: goes on with the wait of a candidate for a forced view.
    fn watch_forced(&mut self) {
        let asks = |c: &&Candidacy| c.forced.is_some() && self.vote.persisted() >= c.term;
        let Some(candidacy) = self.role.candidacy().filter(asks) else {
            return;
        };
        let Some(promises) = &candidacy.promises else {
            return;
        };
        let now = self.context.now();
        // A member that writes its promise to a slow disk says nothing meanwhile.
        let asked_ms = candidacy.wait.since_asked_ms(now);
        let within_ms = self.context.config().leader_timeout_ms + asked_ms;
        let hears_missing = self.without_promise(promises).iter().any(|elector| {
            let peer = self.peers.get(*elector);
            peer.is_some_and(|peer| self.known().hears(within_ms, peer))
        });
        let errs = planted(Mutant::OwnDelayIsSilence);
        if let Some(candidacy) = self.role.candidacy_mut() {
            let asked_at = if errs { candidacy.started_at } else { now };
            candidacy.wait.begin(asked_at);
            candidacy.wait.tick(now, hears_missing && !errs);
        }
    }

    /// Returns the electors whose replicas have not promised.
    fn without_promise(&self, promises: &Promises) -> Vec<Incarnation> {
        let mut electors = self.electors();
        electors.retain(|elector| {
            let replica = self.peers.replica_of(*elector);
            replica.is_some_and(|replica| promises.giver(replica).is_none())
        });
        electors
    }

    /// Asks for pre-votes.
    fn stand(&mut self) -> Option<Won> {
        let number = self.vote.next_number();
        let term = Term {
            number,
            replica: self.my_replica(),
        };
        let missed = self
            .leader_in_term()
            .filter(|_| self.context.config().measures);
        self.role.stand(Candidacy {
            term,
            started_at: self.context.now(),
            granted: BTreeSet::from([self.my_replica()]),
            promises: None,
            forced: None,
            wait: ForcedWait::default(),
            missed: missed.and_then(|leader| self.peers.replica_of(leader)),
        });
        let electors = self.electors();
        (self.out).send(self.peers, electors, Message::PreVote { term });
        self.count_pre_votes()
    }

    /// A process has connected. If it is an elector, the pre-vote that is open asks it too, and a back-off is over: the
    /// attempts before may have failed for want of it.
    pub(crate) fn met(&mut self, incarnation: Incarnation) {
        if planted(Mutant::MetElectorNotAsked) || !self.electors().contains(&incarnation) {
            return;
        }
        if self.role.is_follower() {
            let rank = self.rank();
            self.election_timer.met_elector(self.context.now(), rank);
        }
        let pre_votes = self.role.candidacy().filter(|c| c.promises.is_none());
        if let Some(term) = pre_votes.map(|candidacy| candidacy.term) {
            self.send(incarnation, Message::PreVote { term });
        }
    }

    /// Returns the processes whose promises can count: one per replica of a configuration in force, also if the member
    /// was restarted.
    fn electors(&self) -> Vec<Incarnation> {
        let me = self.my_replica();
        let seated = (self.peers.connected())
            .filter(|(_, peer)| peer.replica != me && self.log.has_seat(peer.replica));
        let single = seated.filter(|(incarnation, peer)| {
            !self.known().has_duplicate(peer.replica, *incarnation)
                || planted(Mutant::DuplicatesVote)
        });
        single.map(|(incarnation, _)| incarnation).collect()
    }

    /// Drops the promise of a process that turns out to be a duplicate replica. If this process is one of the two, it
    /// gives up its candidacy, unless an operator has chosen it.
    pub(crate) fn forget_promise_of_duplicate(&mut self, replica: ReplicaId) {
        let Some(candidacy) = self.role.candidacy() else {
            return;
        };
        let forced = candidacy.forced.is_some();
        let giver = candidacy.promises.as_ref().and_then(|p| p.giver(replica));
        let doubtful = giver.is_some_and(|giver| self.known().has_duplicate(replica, giver));
        if !doubtful || planted(Mutant::DuplicatesVote) {
            return;
        }
        if replica != self.my_replica() {
            if let Some(promises) = self.promises_mut() {
                promises.remove(replica);
            }
        } else if !forced {
            self.give_up();
        }
    }

    /// The promises to this candidate; None if this member is no candidate, or still asks for pre-votes.
    fn promises_mut(&mut self) -> Option<&mut Promises> {
        self.role.candidacy_mut()?.promises.as_mut()
    }

    fn give_up(&mut self) {
        self.role.follow();
        let rank = self.rank();
        self.election_timer.gave_up(self.context.now(), rank);
    }

    #[must_use = "the winner must lead"]
    pub(crate) fn pre_vote_reply(
        &mut self,
        from: Incarnation,
        term: Term,
        granted: bool,
    ) -> Option<Won> {
        let replica = self.peers.replica_of(from)?;
        let candidacy = self.role.candidacy_mut()?;
        if candidacy.term != term || candidacy.promises.is_some() || !granted {
            return None;
        }
        candidacy.granted.insert(replica);
        self.count_pre_votes()
    }

    fn count_pre_votes(&mut self) -> Option<Won> {
        let candidacy = (self.role.candidacy()).filter(|c| c.promises.is_none())?;
        if self.branches().is_overridden() {
            self.give_up();
            return None;
        }
        let me = self.my_replica();
        let enough = |configuration: &Configuration| {
            let granted = |m: &Member| candidacy.granted.contains(&m.replica);
            let others = configuration.weight_of(|m| m.replica != me && granted(m));
            // An amnesiac candidate needs half of the votes from other, intact members ([`Promises::elect`]). If nobody
            // else has a vote in its old view, its candidacy would only disturb members that have gone on (simulator,
            // seed 3006969).
            let forgets = self.vote.is_amnesiac() && !planted(Mutant::AmnesiacCountsAsIntact);
            // If all voters are here, they may go on with their best evidence (rule 4).
            let all = configuration.weight_of(granted) == configuration.total_weight();
            let enough = all || self.wants_no_more_evidence();
            let by_evidence = enough && !self.vote.has_lost_views() && self.has_heard_around();
            let may_win = !forgets || configuration.is_half(others) || by_evidence;
            may_win && configuration.is_majority(configuration.weight_of(granted))
        };
        if !self.log.in_every_configuration(enough) {
            return None;
        }
        let (number, missed) = (candidacy.term.number, candidacy.missed);
        self.ask_promises(number, None, missed)
    }

    /// Promises a new term of at least this number itself, and asks the others for promises.
    #[must_use = "the winner must lead"]
    pub(crate) fn ask_promises(
        &mut self,
        number: u64,
        forced: Option<Uuid>,
        missed: Option<ReplicaId>,
    ) -> Option<Won> {
        let number = number.max(self.vote.next_number());
        let term = Term {
            number,
            replica: self.my_replica(),
        };
        self.promise_term(term);
        let mut promises = Promises::default();
        let overrides = self.log.committed().overrides.clone();
        let promise = self.own_promise(term);
        promises.insert(self.my_replica(), self.me(), promise, Some(overrides));
        self.role.stand(Candidacy {
            term,
            started_at: self.context.now(),
            granted: BTreeSet::new(),
            promises: Some(promises),
            forced,
            wait: ForcedWait::default(),
            missed,
        });
        for elector in self.electors() {
            self.send_persisted(elector, Message::Prepare { term, forced });
        }
        self.count_promises()
    }

    /// Takes a promise to this candidate.
    #[must_use = "the winner must lead"]
    pub(crate) fn promise(&mut self, from: Incarnation, promise: Promise) -> Option<Won> {
        let replica = self.peers.replica_of(from)?;
        let candidacy = self.role.candidacy()?;
        if candidacy.term != promise.term {
            return None;
        }
        let promise = self.branches().as_evidence(from, promise)?;
        let overrides = self.known().overrides_of(from).cloned();
        self.promises_mut()?
            .insert(replica, from, promise, overrides);
        self.count_promises()
    }

    #[must_use = "the winner must lead"]
    pub(crate) fn refused(&mut self, from: Incarnation, promised: Term) -> Option<Won> {
        if promised <= self.vote.promised() {
            return None;
        }
        self.vote.saw(promised.number);
        let is_pre_vote = self.role.candidacy().is_some_and(|c| c.promises.is_none());
        let number = self.vote.next_number();
        if is_pre_vote && promised.number >= number {
            // So far ahead is no correct member, but one may have promised that number to a process that lies. With
            // each promise of its own this member believes further ones, until it passes that.
            let replica = self.my_replica();
            self.promise_term(Term { number, replica });
            self.give_up();
            return None;
        }
        let replica = self.peers.replica_of(from);
        let seated = replica.is_some_and(|replica| self.log.has_seat(replica));
        if let Some(candidacy) = self.role.candidacy() {
            return match (candidacy.forced, &candidacy.promises) {
                (Some(forced), Some(_)) => self.ask_promises(0, Some(forced), None),
                _ => {
                    self.give_up();
                    None
                }
            };
        }
        let leads = (self.role.leader()).is_some_and(|leader| seated && !leader.is_closing());
        if leads && self.component.is_primary() {
            // A member has promised a higher term: this leader asks for promises of a still higher one, and goes on.
            return self.ask_promises(0, None, None);
        }
        if leads {
            // The others have gone on without this member: it follows, or is elected again.
            self.step_aside();
        }
        None
    }

    #[must_use = "the winner must lead"]
    pub(crate) fn take_leadership(
        &mut self,
        from: Incarnation,
        number: u64,
        forced: Option<Uuid>,
    ) -> Option<Won> {
        // The owner of the best log must lead, even a restarted process whose admission is not committed yet, or a
        // leaving member (which transfers leadership again). A member that has committed its own removal cannot lead,
        // and need not: others have that log as well.
        let seated = self.log.has_seat(self.my_replica());
        let able = self.log.tail().end() > 0
            && !self.component.is_gone()
            && !self.branches().is_overridden()
            && seated;
        let able = able && !self.branches().may_be_a_copy() && !self.role.is_leader();
        // The one that asks for an override may have asked before this member met a majority again.
        let may_force = self.may_promise_override() && self.has_room_for_override();
        // A member that may be voted out does not go on alone, neither for itself nor for one with `pc.ignore_quorum`.
        let yields = forced.is_some_and(|id| yields(&id));
        let may_force = may_force && !(yields && self.branches().own_seat().is_none());
        if !able || forced.is_some() && !may_force {
            return None;
        }
        // Only a leader's transfer says that this is a good place for the leader. A candidate that defers to a better
        // log does not say so.
        let is_handed_over = self.leader_in_term() == Some(from);
        let by_leader = self.context.config().measures && is_handed_over;
        self.election_timer.offered(self.context.now(), by_leader);
        self.ask_promises(number, forced, None)
    }

    /// The last attempt may have deferred to a candidate with a longer log, which did not become leader. Maybe it
    /// reaches no majority, and would be deferred to for ever. So this attempt ignores that candidate's promise if the
    /// others are enough. Otherwise it waits for more promises. Returns true if it must wait.
    fn waits_for_others(&mut self) -> bool {
        let (without_some, elsewhere) = (self.has_waited_for_evidence(), self.elsewhere());
        let Some(Candidacy {
            promises: Some(promises),
            forced: None,
            ..
        }) = self.role.candidacy_mut()
        else {
            return false;
        };
        let Some(others) = promises.without(self.election_timer.deferred_to()) else {
            return false;
        };
        let made = others.without_unmade_views();
        let enough = made.elect(&made.required_configurations());
        if enough {
            *promises = others;
        }
        // If the promises are all that evidence needs, including that one, there is nothing more to wait for.
        !enough && !promises.are_all(without_some, &elsewhere)
    }

    /// Decides the attempt once enough promises are in.
    #[must_use = "the winner must lead"]
    pub(crate) fn count_promises(&mut self) -> Option<Won> {
        if self.waits_for_others() {
            return None;
        }
        let candidacy = self.role.candidacy()?;
        let promises = candidacy.promises.as_ref()?.without_unmade_views();
        if self.vote.persisted() < candidacy.term {
            return None;
        }
        let forced = candidacy.forced;
        if forced.is_none() && self.branches().is_overridden() {
            self.give_up();
            return None;
        }
        let enough = match forced {
            Some(_) => {
                let has_waited = candidacy.wait.over_at().is_some();
                has_waited || self.without_promise(&promises).is_empty()
            }
            None => promises.elect(&promises.required_configurations()),
        };
        if !enough {
            return self.go_on_by_evidence();
        }
        if forced.is_some_and(|id| is_automatic(&id)) && !self.may_go_on_with(&promises) {
            self.give_up();
            return None;
        }
        let promises = match forced {
            Some(_) => promises.usable(),
            None => promises,
        };
        let required = promises.required_configurations();
        // The own promise is among the usable ones if the cluster can go on with this log. The log has not changed
        // since.
        let own = (promises.of(self.my_replica())).filter(|p| promises.may_hold_committed(p));
        let own = own.map(|p| p.summary.last());
        let best = promises.best(&required).filter(|(_, log)| Some(*log) > own);
        let best = best.filter(|_| !planted(Mutant::ShorterLogLeads));
        let best = best.filter(|_| forced.is_none() || !planted(Mutant::ForcedViewOnOwnLog));
        if let Some((owner, _)) = best {
            let number = candidacy.term.number + 1;
            self.leave_leadership_to(owner, number, forced);
            return None;
        }
        self.win(promises, required, forced)
    }

    /// False if `pc.ignore_sb` alone lets this process go on, and these promisers are less than half of the votes: more
    /// may have been heard before, and not have promised. If this process has no such option, it stands for another one.
    fn may_go_on_with(&self, promises: &Promises) -> bool {
        let config = self.context.config();
        let needs_half = config.ignore_split_brain
            && !config.ignore_quorum
            && !planted(Mutant::UnpromisedHalfCounts);
        let has_promised = |m: &Member| promises.of(m.replica).is_some();
        !needs_half || (self.log).in_every_configuration(|c| c.is_half(c.weight_of(has_promised)))
    }

    /// True if a configuration that may be in force lists the replica under this incarnation. Nothing is ordered under
    /// other incarnations (rule 9).
    fn is_seated(&self, replica: ReplicaId, name: Incarnation) -> bool {
        let later = self.log.uncommitted();
        let mut all = later
            .map(|(_, later)| later)
            .chain([&self.log.committed().configuration]);
        all.any(|c| {
            c.member(name)
                .is_some_and(|member| member.replica == replica)
        })
    }

    /// Defers to the owner of a better log, and asks it to take leadership.
    pub(crate) fn leave_leadership_to(
        &mut self,
        owner: Incarnation,
        number: u64,
        forced: Option<Uuid>,
    ) {
        self.role.follow();
        self.election_timer.defers_to(owner, self.context.now());
        self.send(owner, Message::TakeLeadership { number, forced });
    }

    /// Wins by these promises. None: entries must be read from the log first, and the candidacy goes on.
    #[must_use = "the winner must lead"]
    pub(crate) fn win(
        &mut self,
        promises: Promises,
        required: Vec<(Position, Configuration)>,
        forced: Option<Uuid>,
    ) -> Option<Won> {
        let candidacy = self.role.take_candidacy()?;
        let known = match forced.is_some() && planted(Mutant::ForkPointFromOwnLog) {
            true => 0,
            false => promises.commit(),
        };
        let commit = known.max(self.log.committed().position);
        let withdrawn = promises.withdrawn(|replica, name| self.is_seated(replica, name));
        let is_void = |entry: &&Entry| {
            let id = entry.submission().filter(|id| withdrawn.contains(id));
            id.is_some_and(|id| {
                promises.exclude_commit(entry.position, id, &required, self.log.tail())
            })
        };
        let above = self.log.tail().above(commit);
        let void = above.filter(|_| !planted(Mutant::WithdrawnKept));
        let void: BTreeSet<Position> = void.filter(is_void).map(|entry| entry.position).collect();
        let read_from = void.first().copied();
        if let Some(first) = read_from.filter(|first| *first <= self.log.tail().left()) {
            self.log.want_from(first);
            self.role.stand(candidacy);
            return None;
        }
        Some(Won {
            promises,
            commit,
            forced,
            missed: candidacy.missed,
            withdrawn,
            void,
        })
    }
}
