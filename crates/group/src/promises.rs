//! The promises of one term, and the conclusions from them (rules 1, 3, 4, 7).
//!
//! In: promises, by replica. Out: whether they are enough, whose log must lead, and which withdrawn entries no majority
//! can have acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use trireme_mutants::{Mutant, planted};

use crate::configuration::{Configuration, Member};
use crate::ids::{Incarnation, Position, ReplicaId, SubmissionId, Term};
use crate::message::Promise;
use crate::tail::Tail;

/// The promises of one term by replica, each with the process that gave it.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Promises(BTreeMap<ReplicaId, (Incarnation, Promise)>);

impl Promises {
    pub fn insert(&mut self, replica: ReplicaId, giver: Incarnation, promise: Promise) {
        self.0.insert(replica, (giver, promise));
    }

    pub fn remove(&mut self, replica: ReplicaId) {
        self.0.remove(&replica);
    }

    /// The process that has promised for the replica.
    pub fn giver(&self, replica: ReplicaId) -> Option<Incarnation> {
        self.0.get(&replica).map(|(giver, _)| *giver)
    }

    pub fn all(&self) -> impl Iterator<Item = (ReplicaId, Incarnation, &Promise)> {
        let all = self.0.iter();
        all.map(|(replica, (giver, promise))| (*replica, *giver, promise))
    }

    /// The promises without that of this process; None if it has not promised.
    pub fn without(&self, passed_over: Option<Incarnation>) -> Option<Promises> {
        let mut others = self.0.clone();
        others.retain(|_, (giver, _)| Some(*giver) != passed_over);
        (others.len() < self.0.len()).then_some(Promises(others))
    }

    /// The promises without unusable logs. A log is unusable if its owner lacks the control state, and no log of a
    /// promiser with that state reaches its begin. If no promiser has the control state, returns all.
    pub fn usable(&self) -> Promises {
        let has_state = |p: &Promise| p.proof.known > 0;
        let reaches = |p: &Promise, first, term| {
            has_state(p) && (p.summary.commit >= first || p.summary.has(first, term))
        };
        let is_usable = |p: &Promise| {
            let Some((term, first, _)) = p.summary.runs.first() else {
                return true; // there is no log
            };
            has_state(p) || self.promises().any(|p| reaches(p, *first, *term))
        };
        let mut usable = self.0.clone();
        if self.promises().any(has_state) {
            usable.retain(|_, (_, promise)| is_usable(promise));
        }
        Promises(usable)
    }

    fn promises(&self) -> impl Iterator<Item = &Promise> + Clone {
        self.0.values().map(|(_, promise)| promise)
    }

    /// The greatest commit point of the promisers.
    pub fn commit(&self) -> Position {
        self.promises().map(|p| p.summary.commit).max().unwrap_or(0)
    }

    /// The submissions that their origins have withdrawn. `is_seated`: a configuration lists the replica under this
    /// incarnation, so that the promiser speaks for it.
    pub fn withdrawn(
        &self,
        is_seated: impl Fn(ReplicaId, Incarnation) -> bool,
    ) -> BTreeSet<SubmissionId> {
        let all = self.all();
        let withdrawn = all.flat_map(|(replica, giver, p)| {
            let ids = p.withdrawn.iter();
            ids.map(move |id| (replica, giver, *id))
        });
        let own = withdrawn.filter(|(replica, giver, id)| {
            id.incarnation == *giver || is_seated(*replica, id.incarnation)
        });
        own.map(|(_, _, id)| id).collect()
    }

    /// The last committed configuration and every later one in the best log, with their positions
    /// (rule 3).
    pub fn required_configurations(&self) -> Vec<(Position, Configuration)> {
        let best = self.promises().max_by_key(|p| p.summary.last());
        let commit = self.commit();
        let mut knowing = self.promises().filter(|p| p.summary.commit == commit);
        let committed = knowing.find_map(|p| p.configurations.first().cloned());
        let mut required: Vec<_> = committed.into_iter().collect();
        if let Some(best) = best {
            let later = best.configurations.iter().skip(1);
            required.extend(later.filter(|(position, _)| *position > commit).cloned());
        }
        required
    }

    /// True if the promises are enough in each of these configurations.
    pub fn elect(&self, required: &[(Position, Configuration)]) -> bool {
        let heeded = match planted(Mutant::OutdatedViewElects) {
            true => required.len().min(1),
            false => required.len(),
        };
        let mut required = required[..heeded].iter();
        required.all(|(_, configuration)| self.elect_in(configuration))
    }

    /// True if the promisers weigh more than half of the votes, and the intact ones at least half (rule 4).
    fn elect_in(&self, configuration: &Configuration) -> bool {
        let promised = configuration.weight_of(|m| self.0.contains_key(&m.replica));
        let intact = configuration.weight_of(|m| {
            let intact = |p: &Promise| !p.amnesiac || planted(Mutant::AmnesiacCountsAsIntact);
            self.0.get(&m.replica).is_some_and(|(_, p)| intact(p))
        });
        configuration.is_majority(promised) && configuration.is_half(intact)
    }

    /// Returns the owner of the best log, and that log's last entry. Between equal logs, a replica in the newest
    /// configuration wins: another could not lead.
    pub fn best(
        &self,
        required: &[(Position, Configuration)],
    ) -> Option<(Incarnation, (Term, Position))> {
        let newest = required.last().map(|(_, configuration)| configuration);
        let seated = |replica| newest.is_some_and(|newest| newest.replica(replica).is_some());
        let best = (self.all()).max_by_key(|(replica, _, p)| (p.summary.last(), seated(*replica)));
        best.map(|(_, owner, promise)| (owner, promise.summary.last()))
    }

    /// True if no majority can have acknowledged the withdrawn entry at `position` of this log (rule 7). To commit the
    /// entry, a majority of each configuration below it must hold the next configuration, and a majority of the last
    /// one must hold the entry itself. If one of these majorities is impossible, the entry is not committed.
    pub fn exclude_commit(
        &self,
        position: Position,
        withdrawn: SubmissionId,
        required: &[(Position, Configuration)],
        log: &Tail,
    ) -> bool {
        let in_force = required.iter().take_while(|(at, _)| *at < position);
        in_force.enumerate().any(|(index, (_, configuration))| {
            let next = required.get(index + 1).map_or(position, |(at, _)| *at);
            let needed = position.min(next);
            let term = log.term_at(needed);
            term.is_some_and(|term| {
                let may_hold = |m: &Member| self.may_hold(m.replica, needed, term, withdrawn);
                !configuration.is_majority(configuration.weight_of(may_hold))
            })
        })
    }

    /// True if the replica may have acknowledged the entry at `position`, which the commit of the withdrawn entry
    /// needs. If an earlier connection of its process withdrew the entry, it has not, whatever the process has
    /// forgotten since. That connection withdrew it because no view that it knew has a majority without its vote.
    fn may_hold(
        &self,
        replica: ReplicaId,
        position: Position,
        term: Term,
        withdrawn: SubmissionId,
    ) -> bool {
        let Some((giver, promise)) = self.0.get(&replica) else {
            return true;
        };
        let by_earlier = withdrawn.incarnation != *giver
            && promise.withdrawn.contains(&withdrawn)
            && !planted(Mutant::WithdrawalDoubted);
        !by_earlier && (promise.amnesiac || promise.summary.may_have(position, term))
    }
}
