//! Taking the sequencer's office: a new ballot, the same membership (rules 1-5).
//!
//! A member that misses its sequencer first asks whether a majority misses it too (pre-vote), then
//! asks for promises. The best log among the promisers must lead: a candidate with a shorter one
//! asks the owner of the best to take the office, so that nobody ever has to fetch entries first.

use std::collections::{BTreeMap, BTreeSet};

use trireme_mutants::{Mutant, planted};

use crate::configuration::{Configuration, Member};
use crate::entry::Entry;
use crate::event::Action;
use crate::group::{Group, LogReader, Role};
use crate::ids::{Ballot, Incarnation, Position, ReplicaId, SubmissionId, TimeMs, Uuid};
use crate::message::{Message, Promise, Standing, Summary, Wish};

/// Candidates of different rank start this far apart.
pub(crate) const STAGGER_MS: TimeMs = 60;
/// The first of them starts so much later than its patience ends: the sequencer's last word may have reached the others
/// a little later than this one.
const FIRST_MS: TimeMs = 20;
/// An attempt that has not succeeded by then has failed.
pub(crate) const ATTEMPT_MS: TimeMs = 400;
/// So much of the log is read at a time.
const READ_BYTES: usize = 4 << 20;
/// An override takes whoever has promised by then.
const FORCED_WAIT_MS: TimeMs = 300;

/// An attempt at the office.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Candidacy {
    ballot: Ballot,
    pub(crate) started_at: TimeMs,
    /// Pre-votes, by replica.
    granted: BTreeSet<ReplicaId>,
    /// None while pre-voting.
    promises: Option<BTreeMap<ReplicaId, (Incarnation, Promise)>>,
    forced: Option<Uuid>,
    /// Who had the office and was missed.
    missed: Option<ReplicaId>,
}

impl Group {
    /// Starts an attempt if the sequencer is missed (rule 2).
    pub(crate) fn watch_office(&mut self) {
        match &self.role {
            Role::Sequencer(_) => return,
            Role::Candidate(candidacy) => {
                let forced_due =
                    candidacy.forced.is_some() && self.now >= candidacy.started_at + FORCED_WAIT_MS;
                if forced_due {
                    self.count_promises();
                }
                if let Role::Candidate(candidacy) = &self.role {
                    if self.now
                        >= candidacy.started_at + (ATTEMPT_MS << self.elections_failed.min(4))
                    {
                        self.give_up();
                    }
                }
                return;
            }
            Role::Follower => {}
        }
        if self.stands_at().is_none_or(|at| self.now < at) {
            return;
        }
        let number = self.promised.number.max(self.number_seen) + 1;
        let ballot = Ballot {
            number,
            replica: self.my_replica(),
        };
        let missed = self.sequencer_in_office().filter(|_| self.config.measures);
        self.role = Role::Candidate(Candidacy {
            ballot,
            started_at: self.now,
            granted: BTreeSet::from([self.my_replica()]),
            promises: None,
            forced: None,
            missed: missed.map(|sequencer| self.peers[&sequencer].replica),
        });
        let electors = self.electors();
        self.send_all(electors, Message::PreVote { ballot });
        self.count_pre_votes();
    }

    /// When this follower stands for the office, if nothing is heard of the sequencer until then; None: never.
    pub(crate) fn stands_at(&self) -> Option<TimeMs> {
        let follows = matches!(self.role, Role::Follower);
        (follows && self.may_stand()).then(|| self.missed_at().max(self.election_at))
    }

    /// When this member's patience with the sequencer ends.
    fn missed_at(&self) -> TimeMs {
        let holder = self.promised.replica;
        let dead = self
            .peers
            .values()
            .any(|peer| peer.replica == holder && peer.dead)
            || self.latest().replica(holder).is_none();
        let patience_ms = if dead {
            0
        } else {
            self.patience_ms() + FIRST_MS
        };
        self.sequencer_heard_at + patience_ms + self.rank() * STAGGER_MS
    }

    /// Voters stand; a restarted process for the seat that its log says it has (rule 14).
    fn may_stand(&self) -> bool {
        self.standing != Standing::Outside
            && !self.is_overridden()
            && self.leaving.is_none()
            && !self.may_be_a_copy()
            && self.own_seat().is_some_and(|m| m.weight > 0)
    }

    /// Candidates try one after another, in this order; who is missed is not among them.
    fn rank(&self) -> TimeMs {
        let (own, holder) = (self.own_seat(), self.promised.replica);
        let members = &self.latest().members;
        let before = members
            .iter()
            .take_while(|m| own.is_some_and(|own| own.incarnation != m.incarnation));
        let index = before.filter(|m| m.replica != holder).count();
        let last = match self.config.wish {
            Wish::Never => members.len(),
            Wish::Auto | Wish::Prefer => 0,
        };
        (index + last) as TimeMs
    }

    /// Everybody whose promise can count; by replica, since a restarted member promises as well.
    fn electors(&self) -> Vec<Incarnation> {
        let me = self.my_replica();
        let peers = self
            .peers
            .iter()
            .filter(|(_, peer)| peer.up && peer.replica != me && self.has_seat(peer.replica))
            .filter(|(incarnation, peer)| {
                !self.has_twin(peer.replica, **incarnation) || planted(Mutant::TwinsVote)
            });
        peers.map(|(incarnation, _)| *incarnation).collect()
    }

    /// A promise of a process that turns out to be one of two on the replica's data directory does not count.
    pub(crate) fn forget_promise_of_twin(&mut self, replica: ReplicaId) {
        let Role::Candidate(candidacy) = &self.role else {
            return;
        };
        let promises = candidacy.promises.as_ref();
        let giver = promises.and_then(|promises| promises.get(&replica));
        let doubtful = giver.is_some_and(|(giver, _)| self.has_twin(replica, *giver));
        if let Role::Candidate(Candidacy {
            promises: Some(promises),
            ..
        }) = &mut self.role
        {
            if doubtful && !planted(Mutant::TwinsVote) {
                promises.remove(&replica);
            }
        }
    }

    fn give_up(&mut self) {
        self.role = Role::Follower;
        self.gave_way_to = None;
        self.elections_failed = (self.elections_failed + 1).min(6);
        let rank = self.rank() + 1;
        self.election_at = self.now + rank * STAGGER_MS + (50 << self.elections_failed);
    }

    pub(crate) fn pre_vote(&mut self, from: Incarnation, ballot: Ballot) {
        let in_office = matches!(self.role, Role::Sequencer(_)) && self.may_order();
        let missed = self.now >= self.sequencer_heard_at + self.patience_ms()
            || self
                .peers
                .values()
                .any(|peer| peer.replica == self.promised.replica && peer.dead)
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

    pub(crate) fn pre_vote_reply(&mut self, from: Incarnation, ballot: Ballot, granted: bool) {
        let Some(replica) = self.peers.get(&from).map(|peer| peer.replica) else {
            return; // `message` has looked it up
        };
        if let Role::Candidate(candidacy) = &mut self.role {
            if candidacy.ballot == ballot && candidacy.promises.is_none() && granted {
                candidacy.granted.insert(replica);
                self.count_pre_votes();
            }
        }
    }

    fn count_pre_votes(&mut self) {
        let Role::Candidate(candidacy) = &self.role else {
            return; // its callers have just seen it
        };
        if candidacy.promises.is_some() {
            return;
        }
        if self.is_overridden() {
            return self.give_up();
        }
        let me = self.my_replica();
        let enough = |configuration: &Configuration| {
            let granted = |m: &Member| candidacy.granted.contains(&m.replica);
            let others = configuration.weight_of(|m| m.replica != me && granted(m));
            // Who may have forgotten needs half of the votes from others who have not (`valid`). Its old view may have
            // nobody else with a vote: it would only disturb those who have gone on (simulator, seed 3006969).
            let forgets = self.amnesiac && !planted(Mutant::AmnesiacCountsAsIntact);
            let may_win = !forgets || configuration.is_half(others);
            may_win && configuration.is_majority(configuration.weight_of(granted))
        };
        if self.in_every_configuration(enough) {
            let (number, missed) = (candidacy.ballot.number, candidacy.missed);
            self.ask_promises(number, None, missed);
        }
    }

    /// Promises the new ballot itself and asks the others to.
    fn ask_promises(&mut self, number: u64, forced: Option<Uuid>, missed: Option<ReplicaId>) {
        let number = number.max(self.promised.number.max(self.number_seen) + 1);
        let ballot = Ballot {
            number,
            replica: self.my_replica(),
        };
        self.promise_ballot(ballot);
        let own = self.own_promise(ballot);
        self.role = Role::Candidate(Candidacy {
            ballot,
            started_at: self.now,
            granted: BTreeSet::new(),
            promises: Some(BTreeMap::from([(self.my_replica(), (self.me(), own))])),
            forced,
            missed,
        });
        for elector in self.electors() {
            self.send_persisted(elector, Message::Prepare { ballot, forced });
        }
        self.count_promises();
    }

    fn own_promise(&self, ballot: Ballot) -> Promise {
        let committed = &self.committed;
        let mut configurations = Vec::new();
        if !committed.configuration.members.is_empty() {
            // The committed one stands for its position or any later one up to the commit point.
            configurations.push((committed.position, committed.configuration.clone()));
        }
        let later = self.tail.configurations(committed.position);
        configurations
            .extend(later.map(|(position, configuration)| (position, configuration.clone())));
        Promise {
            ballot,
            summary: self.tail.summary(committed.position),
            configurations,
            amnesiac: self.amnesiac,
            withdrawn: self.submissions.withdrawn(self.me()),
        }
    }

    pub(crate) fn prepare(&mut self, from: Incarnation, ballot: Ballot, forced: Option<Uuid>) {
        let Some(replica) = self.peers.get(&from).map(|peer| peer.replica) else {
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
        !self.hears_majority(self.config.office_timeout_ms, &self.committed.configuration)
    }

    pub(crate) fn promise(&mut self, from: Incarnation, promise: Promise) {
        let Some(replica) = self.peers.get(&from).map(|peer| peer.replica) else {
            return; // `message` has looked it up
        };
        if let Role::Candidate(candidacy) = &self.role {
            if candidacy.ballot != promise.ballot {
                return;
            }
            let Some(promise) = self.as_evidence(from, promise) else {
                return;
            };
            if let Role::Candidate(Candidacy {
                promises: Some(promises),
                ..
            }) = &mut self.role
            {
                promises.insert(replica, (from, promise));
                self.count_promises();
            }
        } else if matches!(self.role, Role::Sequencer(_)) && promise.ballot == self.promised {
            // Late, but it tells where that log ends.
            self.was_alive(replica);
            self.start_feeding(from, &promise.summary);
        }
    }

    pub(crate) fn refused(&mut self, from: Incarnation, promised: Ballot) {
        if promised <= self.promised {
            return;
        }
        self.number_seen = self.number_seen.max(promised.number);
        let seated = self
            .peers
            .get(&from)
            .is_some_and(|peer| self.has_seat(peer.replica));
        match &self.role {
            // A member promised somebody a higher ballot: the office goes on under a still higher one.
            Role::Sequencer(office) if seated && !office.closing => {
                if self.standing == Standing::Primary {
                    self.ask_promises(self.number_seen + 1, None, None);
                } else {
                    // The others have gone on without this one: it follows, or is elected anew.
                    self.role = Role::Follower;
                    self.matched = false;
                }
            }
            Role::Candidate(candidacy) => match (candidacy.forced, &candidacy.promises) {
                (Some(forced), Some(_)) => {
                    self.ask_promises(self.number_seen + 1, Some(forced), None)
                }
                _ => self.give_up(),
            },
            _ => {}
        }
    }

    pub(crate) fn take_office(&mut self, number: u64, forced: Option<Uuid>) {
        // Whoever has the best log must lead, be it a restarted process whose admission is not
        // committed yet, or one that is leaving (it hands the office over again). Who was removed, by
        // a configuration that it has committed, could not lead: others have that log as well.
        let seated = self.has_seat(self.my_replica());
        let able = self.tail.end() > 0 && !self.gone && !self.is_overridden() && seated;
        let able = able && !self.may_be_a_copy() && !matches!(self.role, Role::Sequencer(_));
        if able && (forced.is_none() || self.has_room_for_override()) {
            self.offered_at = Some(self.now).filter(|_| self.config.measures);
            self.ask_promises(number, forced, None);
        }
    }

    /// Who was left the office and did not open it may be out of reach of a majority, for as long as its longer log
    /// is promised here: the next attempt does without that promise, as if it had not come, if the others are enough.
    /// Until they are it waits for them. True if it is to wait.
    fn waits_for_others(&mut self) -> bool {
        let Role::Candidate(Candidacy {
            promises: Some(promises),
            forced: None,
            ..
        }) = &mut self.role
        else {
            return false;
        };
        let passed_over = self.gave_way_to;
        let is_counted = |(giver, _): &(Incarnation, Promise)| Some(*giver) != passed_over;
        if promises.values().all(is_counted) {
            return false;
        }
        let mut others = promises.clone();
        others.retain(|_, promise| is_counted(promise));
        let required = required_configurations(others.values().map(|(_, promise)| promise));
        let enough = required.iter().all(|(_, c)| valid(c, &others));
        if enough {
            *promises = others;
        }
        !enough
    }

    /// Decides the attempt once enough promises are in.
    pub(crate) fn count_promises(&mut self) {
        if self.waits_for_others() {
            return;
        }
        let Role::Candidate(candidacy) = &self.role else {
            return;
        };
        let Some(promises) = &candidacy.promises else {
            return;
        };
        if self.persisted < candidacy.ballot {
            return;
        }
        let forced = candidacy.forced;
        if forced.is_none() && self.is_overridden() {
            return self.give_up();
        }
        let required = required_configurations(promises.values().map(|(_, promise)| promise));
        let enough = match forced {
            Some(_) => {
                let waited = self.now >= candidacy.started_at + FORCED_WAIT_MS;
                waited
                    || self
                        .electors()
                        .iter()
                        .all(|e| promises.contains_key(&self.peers[e].replica))
            }
            None => required
                .iter()
                .take(if planted(Mutant::OutdatedViewElects) {
                    1
                } else {
                    usize::MAX
                })
                .all(|(_, configuration)| valid(configuration, promises)),
        };
        if !enough {
            return;
        }
        let log_of = |summary: &Summary| (summary.end_ballot, summary.end);
        let own = log_of(&promises[&self.my_replica()].1.summary);
        // Of two that are as good, one that the newest configuration seats: another could not lead.
        let last = required.last().map(|(_, configuration)| configuration);
        let seated = |replica| last.is_some_and(|last| last.replica(replica).is_some());
        let best = promises
            .iter()
            .max_by_key(|(replica, (_, p))| (log_of(&p.summary), seated(**replica)));
        let (best_owner, best_log) = best
            .map(|(_, (owner, p))| (*owner, log_of(&p.summary)))
            .unwrap_or((self.me(), own));
        if best_log > own && !planted(Mutant::ShorterLogLeads) {
            let number = candidacy.ballot.number + 1;
            self.role = Role::Follower;
            self.election_at = self.now + ATTEMPT_MS;
            self.gave_way_to = Some(best_owner);
            self.send(best_owner, Message::TakeOffice { number, forced });
            return;
        }
        self.win(required, forced);
    }

    fn win(&mut self, required: Vec<(Position, Configuration)>, forced: Option<Uuid>) {
        let Role::Candidate(candidacy) = std::mem::replace(&mut self.role, Role::Follower) else {
            return; // `count_promises` has just seen it
        };
        let Some(promises) = &candidacy.promises else {
            return; // the same
        };
        let commit = promises
            .values()
            .map(|(_, p)| p.summary.commit)
            .max()
            .unwrap_or(0);
        let withdrawn: BTreeSet<SubmissionId> = promises
            .values()
            .flat_map(|(_, p)| p.withdrawn.iter().copied())
            .collect();
        let void: BTreeSet<Position> = self
            .tail
            .above(commit.max(self.committed.position))
            .filter(|_| !planted(Mutant::WithdrawnKept))
            .filter(|entry| entry.submission().is_some_and(|id| withdrawn.contains(&id)))
            .map(|entry| entry.position)
            .filter(|position| self.provably_uncommitted(*position, &required, promises))
            .collect();
        if let Some(first) = void.first().filter(|first| **first <= self.tail.left()) {
            self.read_left_from = Some(*first);
            self.role = Role::Candidate(candidacy);
            return;
        }
        // Payloads that came before their withdrawal are not ordered any more; only the number is.
        for id in &withdrawn {
            self.submissions.keep(id.incarnation, id.number, None);
        }
        let last = |entry: &Entry| {
            let mut origins = withdrawn.iter().rev();
            let id = entry.submission()?;
            origins.find(|last| last.incarnation == id.incarnation)
        };
        self.open_office(&|entry: &Entry| match void.contains(&entry.position) {
            true => last(entry).copied(),
            false => None,
        });
        self.gave_way_to = None;
        if let Role::Sequencer(office) = &mut self.role {
            office.missed = candidacy.missed;
        }
        for replica in promises.keys() {
            self.was_alive(*replica);
        }
        for (incarnation, promise) in promises.values() {
            if *incarnation != self.me() {
                self.start_feeding(*incarnation, &promise.summary);
            }
        }
        if let Some(override_id) = forced {
            let mut next = self.latest().clone();
            let me = self.config.me.clone();
            if let Some(seat) = next.members.iter_mut().find(|m| m.replica == me.replica) {
                *seat = me;
            }
            // Other restarted processes come in by themselves.
            next.members.retain(|m| {
                promises
                    .get(&m.replica)
                    .is_some_and(|(i, _)| *i == m.incarnation)
            });
            for member in &mut next.members {
                member.voter = true;
                member.weight = member.full_weight;
            }
            next.ensure_vote(self.my_replica());
            next.number += 1;
            next.override_id = Some(override_id);
            next.fork_after = commit.max(self.committed.position);
            self.out.push(Action::Note {
                text: format!(
                    "made {} members primary without a majority (override {override_id})",
                    next.members.len()
                ),
            });
            self.put_configuration(next);
        } else if self.standing == Standing::NonPrimary {
            self.wish_reform();
        }
    }

    /// What is voided, and all that stands above it, is appended again: payloads of it that are in the log only are read
    /// first.
    pub(crate) fn read_left(&mut self, log: &dyn LogReader) {
        let Some(from) = self.read_left_from.take() else {
            return;
        };
        if !matches!(self.role, Role::Candidate(_)) {
            return;
        }
        let (left, mut next, mut found) = (self.tail.left(), from, Vec::new());
        while next <= left {
            let Ok(run) = log.read_run(next, left, READ_BYTES) else {
                return self.read_left_from = Some(from); // it is tried again
            };
            let Some(last) = run.last() else {
                return; // it cannot be read: the attempt fails
            };
            next = last.position + 1;
            found.extend(run);
        }
        if self.tail.restore(found) {
            self.count_promises();
        }
    }

    /// True if no majority can have acknowledged the entry at `position` (rule 7). To commit it takes
    /// a majority of each configuration in force below it that holds the next configuration, and of
    /// the last one that holds the entry itself: one that cannot have been there is enough.
    fn provably_uncommitted(
        &self,
        position: Position,
        required: &[(Position, Configuration)],
        promises: &BTreeMap<ReplicaId, (Incarnation, Promise)>,
    ) -> bool {
        let in_force = required.iter().take_while(|(at, _)| *at < position);
        in_force.enumerate().any(|(index, (_, configuration))| {
            let next = required.get(index + 1).map_or(position, |(at, _)| *at);
            let needed = position.min(next);
            let ballot = self.tail.ballot_at(needed);
            ballot.is_some_and(|ballot| {
                !configuration.is_majority(may_hold(configuration, promises, needed, ballot))
            })
        })
    }

    /// `pc.bootstrap`; without effect in a primary component.
    pub(crate) fn force_primary(&mut self, override_id: Uuid) {
        if self.standing == Standing::NonPrimary {
            self.force(override_id);
        }
    }

    pub(crate) fn force(&mut self, override_id: Uuid) {
        if self.own_seat().is_none() {
            let text =
                "not made primary: the last view known is without this node, which joins by itself";
            self.out.push(Action::Note { text: text.into() });
            return;
        }
        if !self.has_room_for_override() {
            return;
        }
        let number = self.promised.number + 1;
        self.ask_promises(number, Some(override_id), None);
    }
}

/// The last committed configuration and every later one in the best log, with their positions
/// (rule 3).
fn required_configurations<'a>(
    promises: impl Iterator<Item = &'a Promise> + Clone,
) -> Vec<(Position, Configuration)> {
    let best = promises
        .clone()
        .max_by_key(|p| (p.summary.end_ballot, p.summary.end));
    let commit = promises
        .clone()
        .map(|p| p.summary.commit)
        .max()
        .unwrap_or(0);
    let mut knowing = promises.filter(|p| p.summary.commit == commit);
    let committed = knowing.find_map(|p| p.configurations.first().cloned());
    let mut required: Vec<_> = committed.into_iter().collect();
    if let Some(best) = best {
        let later = best.configurations.iter().skip(1);
        required.extend(later.filter(|(position, _)| *position > commit).cloned());
    }
    required
}

/// More than half of the votes have promised, and the intact ones weigh at least half (rule 4).
fn valid(
    configuration: &Configuration,
    promises: &BTreeMap<ReplicaId, (Incarnation, Promise)>,
) -> bool {
    let promised = configuration.weight_of(|m| promises.contains_key(&m.replica));
    let intact = configuration.weight_of(|m| {
        let intact = |p: &Promise| !p.amnesiac || planted(Mutant::AmnesiacCountsAsIntact);
        promises.get(&m.replica).is_some_and(|(_, p)| intact(p))
    });
    configuration.is_majority(promised) && configuration.is_half(intact)
}

/// Votes of those who may have acknowledged the entry (position, ballot).
fn may_hold(
    configuration: &Configuration,
    promises: &BTreeMap<ReplicaId, (Incarnation, Promise)>,
    position: Position,
    ballot: Ballot,
) -> u64 {
    configuration.weight_of(|m| match promises.get(&m.replica) {
        None => true,
        Some((_, promise)) => {
            let run = |(b, first, last): &(Ballot, Position, Position)| {
                *b == ballot && (*first..=*last).contains(&position)
            };
            promise.amnesiac
                || promise.summary.commit >= position
                || promise.summary.runs.iter().any(run)
        }
    })
}
