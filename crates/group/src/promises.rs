//! The promises of one term, and the conclusions from them (rules 1, 3, 4, 7).
//!
//! In: promises, by replica. Out: whether they are enough, whose log must lead, and which withdrawn entries no majority
//! can have acknowledged.

mod unmade_views;

use std::collections::{BTreeMap, BTreeSet};

use trireme_mutants::{Mutant, planted};

use crate::configuration::{Configuration, Member};
use crate::ids::{Incarnation, Position, ReplicaId, SubmissionId, Term, Uuid};
use crate::message::Promise;
use crate::tail::Tail;

/// The promises of one term by replica, each with the process that gave it.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Promises(BTreeMap<ReplicaId, Given>);

/// A promise, and what else counts with it.
#[derive(Clone, Debug, Hash)]
struct Given {
    giver: Incarnation,
    promise: Promise,
    /// The forced views of the giver's last heartbeat before the promise: its connection may end before the promise
    /// counts. None: it has sent no heartbeat.
    overrides: Option<Vec<Uuid>>,
}

impl Promises {
    pub fn insert(
        &mut self,
        replica: ReplicaId,
        giver: Incarnation,
        promise: Promise,
        overrides: Option<Vec<Uuid>>,
    ) {
        let given = Given {
            giver,
            promise,
            overrides,
        };
        self.0.insert(replica, given);
    }

    pub fn remove(&mut self, replica: ReplicaId) {
        self.0.remove(&replica);
    }

    /// Keeps the promises for these replicas only.
    pub fn retain(&mut self, keeps: impl Fn(ReplicaId) -> bool) {
        self.0.retain(|replica, _| keeps(*replica));
    }

    /// The promise for the replica.
    pub fn of(&self, replica: ReplicaId) -> Option<&Promise> {
        self.0.get(&replica).map(|given| &given.promise)
    }

    /// The process that has promised for the replica.
    pub fn giver(&self, replica: ReplicaId) -> Option<Incarnation> {
        self.0.get(&replica).map(|given| given.giver)
    }

    /// The forced views that the promiser had committed, as it said; None if it has not said so.
    pub fn overrides_of(&self, replica: ReplicaId) -> Option<&Vec<Uuid>> {
        self.0.get(&replica)?.overrides.as_ref()
    }

    pub fn all(&self) -> impl Iterator<Item = (ReplicaId, Incarnation, &Promise)> {
        let all = self.0.iter();
        all.map(|(replica, given)| (*replica, given.giver, &given.promise))
    }

    /// The promises without that of this process; None if it has not promised.
    pub fn without(&self, passed_over: Option<Incarnation>) -> Option<Promises> {
        let mut others = self.0.clone();
        others.retain(|_, given| Some(given.giver) != passed_over);
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
            usable.retain(|_, given| is_usable(&given.promise));
        }
        Promises(usable)
    }

    fn promises(&self) -> impl Iterator<Item = &Promise> + Clone {
        self.0.values().map(|given| &given.promise)
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
        let committed = self.committed_configuration();
        self.required_after(self.commit(), committed)
    }

    fn required_after(
        &self,
        commit: Position,
        committed: Option<&(Position, Configuration)>,
    ) -> Vec<(Position, Configuration)> {
        let in_best = self.best_promise().map_or(&[][..], |p| &p.configurations);
        let later = in_best.iter().skip(1).filter(|(at, _)| *at > commit);
        committed.into_iter().chain(later).cloned().collect()
    }

    /// The last committed configuration, as a promiser with the greatest commit point knows it.
    pub(crate) fn committed_configuration(&self) -> Option<&(Position, Configuration)> {
        let commit = self.commit();
        let mut knowing = self.promises().filter(|p| p.summary.commit == commit);
        knowing.find_map(|p| p.configurations.first())
    }

    fn best_promise(&self) -> Option<&Promise> {
        let may_lead = self.promises().filter(|p| self.may_hold_committed(p));
        may_lead.max_by_key(|p| p.summary.last())
    }

    /// False if the promiser's log lacks an entry that is known to be committed. A log with a greater last term holds all
    /// that is, unless that term began with a pending forced view: such a term needed no majority (rule 11).
    pub fn may_hold_committed(&self, promise: &Promise) -> bool {
        let commit = self.commit();
        let mut knowing = self.promises().filter(|p| p.summary.commit == commit);
        let term = knowing.find_map(|p| p.summary.term_at(commit));
        let mut pending = promise.configurations.iter().skip(1);
        pending.all(|(_, c)| c.override_id.is_none())
            || term.is_none_or(|term| promise.summary.may_have(commit, term))
            || planted(Mutant::PendingOverrideLeads)
    }

    /// True if the promises are enough in each of these configurations that may have been committed.
    pub fn elect(&self, required: &[(Position, Configuration)]) -> bool {
        let mut counting = required
            .iter()
            .enumerate()
            .filter(|(index, (position, _))| {
                let may_be = || self.may_hold_view(*position, required);
                *index == 0 || may_be() && !planted(Mutant::OutdatedViewElects)
            });
        counting.all(|(_, (_, configuration))| self.elect_in(configuration))
    }

    /// True if the promises elect, or a part of them does. A part without the best logs may need fewer configurations.
    /// Of the parts with the same best log, the greatest elects if any does. A part that does not know a committed
    /// forced view is not foreseen: that view has left it behind (rule 11).
    pub fn may_elect(&self) -> bool {
        let (commit, committed) = (self.commit(), self.committed_configuration());
        let ends = self.promises().map(|p| p.summary.last());
        let mut parts = ends.map(|end| {
            let mut part = self.0.clone();
            part.retain(|_, given| given.promise.summary.last() <= end);
            Promises(part)
        });
        parts.any(|part| part.elect(&part.required_after(commit, committed)))
    }

    /// True if the configuration at `position` of the best log may have been committed. A replica that has kept its
    /// configurations, and lacks this one, has not acknowledged it, and has now promised not to (rule 3).
    fn may_hold_view(&self, position: Position, required: &[(Position, Configuration)]) -> bool {
        let best = self.best_promise();
        let term_at = |needed| best.and_then(|p| p.summary.term_at(needed));
        let may_hold = |m: &Member, needed, term| {
            let promise = self.of(m.replica);
            promise.is_none_or(|p| !p.keeps_views() || p.summary.may_have(needed, term))
        };
        may_be_committed(position, required, term_at, may_hold)
            || planted(Mutant::PendingViewAlwaysRequired)
    }

    /// True if the promisers weigh more than half of the votes, and the intact ones at least half (rule 4).
    fn elect_in(&self, configuration: &Configuration) -> bool {
        let promised = configuration.weight_of(|m| self.0.contains_key(&m.replica));
        let intact = configuration.weight_of(|m| {
            let intact = |p: &Promise| !p.amnesiac || planted(Mutant::AmnesiacCountsAsIntact);
            self.of(m.replica).is_some_and(intact)
        });
        configuration.is_majority(promised) && configuration.is_half(intact)
    }

    /// Returns the owner of the best log that may hold everything committed, and that log's last entry. Between equal
    /// logs, a replica in the newest configuration wins: another could not lead.
    pub fn best(
        &self,
        required: &[(Position, Configuration)],
    ) -> Option<(Incarnation, (Term, Position))> {
        let newest = required.last().map(|(_, configuration)| configuration);
        let seated = |replica| newest.is_some_and(|newest| newest.replica(replica).is_some());
        let may_lead = self.all().filter(|(_, _, p)| self.may_hold_committed(p));
        let best = may_lead.max_by_key(|(replica, _, p)| (p.summary.last(), seated(*replica)));
        best.map(|(_, owner, promise)| (owner, promise.summary.last()))
    }

    /// True if no majority can have acknowledged the withdrawn entry at `position` of this log (rule 7).
    pub fn exclude_commit(
        &self,
        position: Position,
        withdrawn: SubmissionId,
        required: &[(Position, Configuration)],
        log: &Tail,
    ) -> bool {
        let may_hold = |m: &Member, needed, term| self.may_hold(m.replica, needed, term, withdrawn);
        !may_be_committed(position, required, |needed| log.term_at(needed), may_hold)
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
        let Some(Given { giver, promise, .. }) = self.0.get(&replica) else {
            return true;
        };
        let by_earlier = withdrawn.incarnation != *giver
            && promise.withdrawn.contains(&withdrawn)
            && !planted(Mutant::WithdrawalDoubted);
        !by_earlier && (promise.amnesiac || promise.summary.may_have(position, term))
    }
}

/// True if the entry at `position` of a log may have been committed. To commit it, a majority of each of these
/// configurations below it must hold the next configuration, and a majority of the last one must hold the entry
/// itself. If one of these majorities is impossible, the entry is not committed. A forced view needs only its own
/// majority, and commits everything below it (rule 11). `term_at`: the terms of that log's entries.
fn may_be_committed(
    position: Position,
    required: &[(Position, Configuration)],
    term_at: impl Fn(Position) -> Option<Term>,
    may_hold: impl Fn(&Member, Position, Term) -> bool,
) -> bool {
    let is_forced = |configuration: &Configuration| {
        configuration.override_id.is_some() && !planted(Mutant::ForcedViewNeedsOthers)
    };
    let by_these = |position: Position| {
        let decides = |(at, configuration): &&(Position, Configuration)| {
            *at < position || *at == position && is_forced(configuration)
        };
        let deciding = &required[..required.iter().take_while(decides).count()];
        let last_forced = deciding.iter().rposition(|(_, c)| is_forced(c));
        let deciding = &deciding[last_forced.unwrap_or(0)..];
        let next = deciding.iter().skip(1).map(|(at, _)| *at).chain([position]);
        deciding
            .iter()
            .zip(next)
            .all(|((_, configuration), needed)| {
                let weight = |term| configuration.weight_of(|m| may_hold(m, needed, term));
                term_at(needed).is_none_or(|term| configuration.is_majority(weight(term)))
            })
    };
    let above = required.iter().filter(|(at, _)| *at > position);
    let mut forced_above = above.filter(|(_, configuration)| is_forced(configuration));
    by_these(position) || forced_above.any(|(at, _)| by_these(*at))
}

#[cfg(test)]
mod tests;
