//! The state that only a leader has, for its term.
//!
//! In: appended entries, answers of the leader that this one replaced. Out: submission numbers at the log's end, and
//! whether the leader orders. It lives as long as the leader's role.

use crate::branches::Branches;
use crate::changes::Changes;
use crate::entry::Entry;
use crate::ids::{Incarnation, Position, ReplicaId, SubmissionId, TimeMs};
use crate::numbers::Numbers;
use crate::replication::Replication;
use crate::transfer::Transfer;

#[derive(Clone, Debug, Hash)]
pub(crate) struct LeaderState {
    since: TimeMs,
    /// Position of the term's first entry.
    start: Position,
    /// Submission numbers at the log's end.
    numbers: Numbers,
    /// True during a transfer of leadership: the leader orders nothing more.
    closing: bool,
    /// The previous leader, if this one was elected because it missed that one.
    missed: Option<ReplicaId>,
    /// The replication of the log to the members.
    pub replication: Replication,
    /// The membership changes that members request.
    pub changes: Changes,
    /// Whether another member would lead better.
    pub transfer: Transfer,
}

impl LeaderState {
    /// `numbers`: the submission numbers at the end of the log. `start`: the next position, that of the first entry.
    pub(crate) fn new(
        now: TimeMs,
        start: Position,
        numbers: Numbers,
        rest_until: TimeMs,
    ) -> LeaderState {
        LeaderState {
            since: now,
            start,
            numbers,
            closing: false,
            missed: None,
            replication: Replication::new(),
            changes: Changes::default(),
            transfer: Transfer::resting_until(rest_until),
        }
    }

    /// Since when this member leads, or hears a majority again.
    pub(crate) fn since(&self) -> TimeMs {
        self.since
    }

    pub(crate) fn start(&self) -> Position {
        self.start
    }

    /// True while this leader hears a majority, so that it can commit an entry that it orders now (rule 7). False
    /// during a transfer of leadership.
    pub(crate) fn may_order(&self, branches: Branches) -> bool {
        let heard_ms = branches.context.config().leader_timeout_ms;
        !self.is_closing()
            && !branches.is_overridden()
            && branches.known().hears_every_majority(heard_ms)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    /// True if that submission number is ordered or voided.
    pub(crate) fn has_counted(&self, id: SubmissionId) -> bool {
        self.numbers.cover(id)
    }

    pub(crate) fn last_number(&self, replica: ReplicaId, incarnation: Incarnation) -> Option<u64> {
        self.numbers.last(replica, incarnation)
    }

    /// Accounts for an appended entry.
    pub(crate) fn count(&mut self, entry: &Entry) {
        self.numbers.apply(entry);
    }

    /// Starts the wait for missing members again, as under a new leader.
    pub(crate) fn begin_anew(&mut self, now: TimeMs) {
        self.since = now;
    }

    /// Stops ordering, or begins to order again.
    pub(crate) fn close(&mut self, closing: bool) {
        self.closing = closing;
    }

    /// Notes the previous leader that was missed.
    pub(crate) fn took_over_from(&mut self, missed: Option<ReplicaId>) {
        self.missed = missed;
    }

    /// This replica answers. Returns true, once, if it is the leader that was missed less than `recent_ms` ago.
    pub(crate) fn was_needless(
        &mut self,
        replica: ReplicaId,
        now: TimeMs,
        recent_ms: TimeMs,
    ) -> bool {
        let is_it = now < self.since + recent_ms && self.missed == Some(replica);
        if is_it {
            self.missed = None;
        }
        is_it
    }

    /// The time stamps, for the model check.
    #[cfg(feature = "model")]
    pub(crate) fn since_mut(&mut self) -> &mut TimeMs {
        &mut self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Uuid;

    #[test]
    fn a_leader_that_was_alive_was_replaced_needlessly_and_that_counts_once() {
        let missed = ReplicaId(Uuid([1; 16]));
        let mut state = LeaderState::new(100, 1, Numbers::default(), 0);
        state.took_over_from(Some(missed));
        assert!(!state.was_needless(ReplicaId::default(), 110, 50));
        assert!(!state.was_needless(missed, 150, 50), "long ago");
        assert!(state.was_needless(missed, 149, 50));
        assert!(!state.was_needless(missed, 149, 50));
    }
}
