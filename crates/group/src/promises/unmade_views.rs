//! Forced views that were begun and never made (rule 11).
//!
//! Such a view is pending in its leader's log, and its own voters cannot have committed it. Its term needed no majority,
//! so the end of that log says nothing about the commits of others: it must not win an election, nor put its owner on a
//! branch of its own.

use trireme_mutants::{Mutant, planted};

use super::{Given, Promises, may_be_committed};
use crate::configuration::{Configuration, Member};
use crate::ids::{Position, Term};
use crate::message::{Promise, Summary};

impl Promises {
    /// The promises as if no log had an end that begins with the term of a forced view that was never made.
    pub(crate) fn without_unmade_views(&self) -> Promises {
        let mut all = self.clone();
        for Given { promise, .. } in all.0.values_mut() {
            let Some(from) = self.unmade_from(promise) else {
                continue;
            };
            if !planted(Mutant::UnmadeViewCounts) {
                promise.end_before(from);
            }
        }
        all
    }

    /// The position of this log from which on nothing was committed, if a forced view that was never made lies there.
    fn unmade_from(&self, promise: &Promise) -> Option<Position> {
        let may_be = |at| self.may_be_committed_in(promise, at, Promise::keeps_views);
        let forced = |(_, view): &&(Position, Configuration)| view.override_id.is_some();
        let all = promise.configurations.iter().filter(forced);
        let pending = all.filter(|(at, _)| *at > promise.summary.commit);
        // A forced view commits everything below it.
        let above = pending
            .rev()
            .map_while(|(at, _)| (!may_be(*at)).then_some(*at));
        let view_at = above.last()?;
        let (term, begins_at, _) = promise.summary.run_at(view_at)?;
        let keeps_entries = |p: &Promise| !p.amnesiac && p.keeps_views();
        let from = match self.may_be_committed_in(promise, begins_at, keeps_entries)
            && !self.know_another(begins_at, term)
        {
            true => view_at,
            false => begins_at,
        };
        // The summary must tell the entry before. There is none before position 0, which a peer may name.
        promise.summary.term_at(from.checked_sub(1)?).map(|_| from)
    }

    /// True if a promiser knows that the entry at `position` was committed with another term.
    fn know_another(&self, position: Position, term: Term) -> bool {
        let knowing = self.promises().filter(|p| p.summary.commit >= position);
        let mut terms = knowing.filter_map(|p| p.summary.term_at(position));
        terms.any(|other| other != term)
    }

    /// True if the entry at `position` of this log may have been committed. A replica that has kept such entries, and
    /// lacks this one, has not acknowledged it, and has now promised not to.
    fn may_be_committed_in(
        &self,
        log: &Promise,
        position: Position,
        keeps: impl Fn(&Promise) -> bool,
    ) -> bool {
        let may_hold = |member: &Member, needed: Position, term: Term| {
            let promise = self.of(member.replica);
            let holds = |log: &Summary| match log.term_at(needed) {
                Some(other) => other == term,
                None => log.may_have(needed, term),
            };
            promise.is_none_or(|p| !keeps(p) || holds(&p.summary))
        };
        let term_at = |needed| log.summary.term_at(needed);
        may_be_committed(position, &log.configurations, term_at, may_hold)
    }
}

impl Promise {
    /// Ends the log before this position, the entry before which it tells.
    fn end_before(&mut self, position: Position) {
        let runs = &mut self.summary.runs;
        runs.retain(|(_, first, _)| *first < position);
        if let Some((term, _, last)) = runs.last_mut() {
            *last = position - 1;
            (self.summary.end_term, self.summary.end) = (*term, *last);
        }
        self.configurations.retain(|(at, _)| *at < position);
    }
}
