//! Actions of the group that the replicator has not got yet. The first of them deliver entries whose payloads stayed in
//! the log when the process began; these are read back a piece at a time. All later actions wait behind them: the order
//! must hold.

use std::collections::VecDeque;

use trireme_group::{Action, Delivery, Position};
use trireme_mutants::{Mutant, planted};
use trireme_replicator::Unread;

use crate::thresholds::Thresholds;

/// Time until the next try if the log is unreadable for a moment.
const RETRY_MS: u64 = 100;

/// The waiting actions, in order.
pub(crate) struct Undelivered {
    actions: VecDeque<Action>,
    /// Bytes of the payloads that wait here. Beyond a slice, payloads stay in the log, which has them already.
    waiting_bytes: usize,
    /// Bytes that are delivered in one go.
    slice_bytes: usize,
    /// Bytes that are read at once.
    read_bytes: usize,
    /// When the next slice is due; None: nothing waits.
    due_ms: Option<u64>,
}

/// Entries of the log.
type ReadBack = Result<Vec<(Position, Delivery)>, Unread>;

/// The next step of the deliveries.
#[allow(clippy::large_enum_variant)] // one at a time, none is kept
pub(crate) enum Next {
    /// Nothing waits.
    Nothing,
    /// The log cannot be read for a moment.
    NotYet,
    /// The log cannot be read, for this reason.
    Lost(String),
    /// Carry out this action.
    Action(Action),
    /// Deliver these entries.
    Entries(Vec<(Position, Delivery)>),
}

impl Undelivered {
    /// Returns an empty queue. `queue_bytes`: the bound of the replicator's queues in memory
    /// ([`trireme_replicator::Options::queue_bytes`]).
    pub fn new(queue_bytes: usize, thresholds: &Thresholds) -> Undelivered {
        let slice_bytes = thresholds.slice_bytes.min(queue_bytes).max(1);
        Undelivered {
            actions: VecDeque::new(),
            waiting_bytes: 0,
            slice_bytes,
            read_bytes: thresholds.read_back_bytes.min(slice_bytes),
            due_ms: None,
        }
    }

    /// Returns the number of bytes that may be delivered in one go.
    pub fn slice_bytes(&self) -> usize {
        self.slice_bytes
    }

    /// Returns the time when the next slice is due.
    pub fn due_ms(&self) -> Option<u64> {
        self.due_ms
    }

    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Takes an action for the replicator if it must wait behind others, and gives back any other.
    pub fn take_in(&mut self, action: Action) -> Option<Action> {
        let is_left = matches!(action, Action::DeliverFromLog { .. });
        let is_for_replicator = matches!(
            action,
            Action::Deliver { .. }
                | Action::NonPrimary { .. }
                | Action::Failed { .. }
                | Action::Spread { .. }
                | Action::Passed { .. }
                | Action::ReadPoint { .. }
                | Action::ReadFailed { .. }
        );
        let follows = is_for_replicator && !self.is_empty() && !planted(Mutant::LeftIsOvertaken);
        if is_left || follows {
            self.keep(action);
            return None;
        }
        Some(action)
    }

    fn keep(&mut self, action: Action) {
        let Action::Deliver { position, delivery } = &action else {
            return self.actions.push_back(action);
        };
        let (position, bytes) = (*position, payload_bytes(delivery));
        if bytes == 0 || self.waiting_bytes + bytes <= self.slice_bytes {
            self.waiting_bytes += bytes;
            return self.actions.push_back(action);
        }
        match self.actions.back_mut() {
            Some(Action::DeliverFromLog { last, .. }) if *last + 1 == position => *last = position,
            _ => self.actions.push_back(Action::DeliverFromLog {
                first: position,
                last: position,
            }),
        }
    }

    /// Takes the next action, or the next entries. `read_back`: reads the log ([`trireme_replicator::History::read_back`]).
    pub fn next(
        &mut self,
        now_ms: u64,
        read_back: impl FnOnce(Position, Position, usize) -> ReadBack,
    ) -> Next {
        if self.due_ms.is_some_and(|due_ms| due_ms > now_ms) {
            return Next::NotYet;
        }
        let (first, last) = match self.actions.pop_front() {
            Some(Action::DeliverFromLog { first, last }) => (first, last),
            Some(Action::Deliver { position, delivery }) => {
                self.waiting_bytes -= payload_bytes(&delivery);
                return Next::Entries(vec![(position, delivery)]);
            }
            Some(action) => return Next::Action(action),
            None => return Next::Nothing,
        };
        match read_back(first, last, self.read_bytes).and_then(|found| check(first, found)) {
            Ok(found) => {
                let first = first + found.len() as Position;
                if first <= last {
                    let rest = Action::DeliverFromLog { first, last };
                    self.actions.push_front(rest);
                }
                Next::Entries(found)
            }
            Err(Unread::NotNow) => {
                let again = Action::DeliverFromLog { first, last };
                self.actions.push_front(again);
                self.due_ms = Some(now_ms + RETRY_MS);
                Next::NotYet
            }
            Err(Unread::Lost(error)) => Next::Lost(format!(
                "the write-set log cannot be read at position {first}: {error}"
            )),
        }
    }

    /// Ends a slice: the rest, if there is one, is due at once.
    pub fn end_slice(&mut self, now_ms: u64) {
        self.due_ms = (!self.is_empty()).then_some(now_ms);
    }

    /// Drops the waiting deliveries. Returns the other actions that wait.
    pub fn drop_deliveries(&mut self) -> Vec<Action> {
        let is_delivery = |action: &Action| {
            matches!(
                action,
                Action::Deliver { .. } | Action::DeliverFromLog { .. }
            )
        };
        let actions = std::mem::take(&mut self.actions);
        self.waiting_bytes = 0;
        (actions.into_iter().filter(|action| !is_delivery(action))).collect()
    }
}

/// Checks that the entries begin with this position, and have no gap.
fn check(first: Position, found: Vec<(Position, Delivery)>) -> ReadBack {
    let at = found.iter().map(|(position, _)| *position);
    match !found.is_empty() && at.eq((first..).take(found.len())) {
        true => Ok(found),
        false => Err(Unread::Lost("it is not there".to_owned())),
    }
}

/// Returns the number of bytes that a delivery counts for.
pub(crate) fn payload_bytes(delivery: &Delivery) -> usize {
    match delivery {
        Delivery::Submission { payload, .. } => payload.len(),
        Delivery::Configuration(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use trireme_group::{Incarnation, SubmissionId};

    use super::*;

    /// Reads at most two entries.
    fn pair(first: Position, last: Position, _max_bytes: usize) -> ReadBack {
        Ok((first..=last).take(2).map(entry).collect())
    }

    fn entry(position: Position) -> (Position, Delivery) {
        let id = SubmissionId {
            incarnation: Incarnation::default(),
            number: position,
        };
        let payload = Bytes::from_static(b"payload");
        (position, Delivery::Submission { id, payload })
    }

    /// The entries 1 to 3, and an action that waits behind them.
    fn waiting() -> Undelivered {
        let mut undelivered = Undelivered::new(1 << 20, &Thresholds::default());
        let first = undelivered.take_in(Action::DeliverFromLog { first: 1, last: 3 });
        let behind = undelivered.take_in(Action::Passed { position: 3 });
        assert!(first.is_none() && behind.is_none());
        undelivered
    }

    /// Behind entries that are read back, payloads beyond a slice stay in the log.
    #[test]
    fn what_waits_takes_a_bounded_amount_of_memory() {
        let slice_bytes = 2 * "payload".len();
        let mut undelivered = Undelivered::new(slice_bytes, &Thresholds::default());
        undelivered.take_in(Action::DeliverFromLog { first: 1, last: 1 });
        for position in 2..=6 {
            let (position, delivery) = entry(position);
            assert!(
                undelivered
                    .take_in(Action::Deliver { position, delivery })
                    .is_none()
            );
        }
        let last = undelivered.actions.back();
        assert!(matches!(
            last,
            Some(Action::DeliverFromLog { first: 4, last: 6 })
        ));
        for delivered in [vec![1], vec![2], vec![3], vec![4, 5], vec![6]] {
            assert_eq!(positions(undelivered.next(0, pair)), delivered);
        }
        assert_eq!(undelivered.waiting_bytes, 0);
    }

    fn positions(next: Next) -> Vec<Position> {
        match next {
            Next::Entries(found) => found.into_iter().map(|(position, _)| position).collect(),
            _ => panic!("no entries"),
        }
    }

    #[test]
    fn entries_come_a_piece_at_a_time_and_later_actions_behind_them() {
        let mut undelivered = waiting();
        let other = undelivered.take_in(Action::Note { text: "".into() });
        assert!(other.is_some(), "it is not for the replicator");
        assert_eq!(positions(undelivered.next(0, pair)), [1, 2]);
        assert_eq!(positions(undelivered.next(0, pair)), [3]);
        let next = undelivered.next(0, pair);
        assert!(matches!(next, Next::Action(Action::Passed { position: 3 })));
        assert!(matches!(undelivered.next(0, pair), Next::Nothing));
        assert!(undelivered.is_empty());
    }

    #[test]
    fn an_unreadable_log_is_read_again_after_a_while() {
        let mut undelivered = waiting();
        let next = undelivered.next(5, |_, _, _| Err(Unread::NotNow));
        assert!(matches!(next, Next::NotYet));
        assert_eq!(undelivered.due_ms(), Some(5 + RETRY_MS));
        assert!(matches!(undelivered.next(5, pair), Next::NotYet));
        assert_eq!(positions(undelivered.next(5 + RETRY_MS, pair)), [1, 2]);
    }

    #[test]
    fn entries_that_are_not_there_are_lost() {
        let next = waiting().next(0, |_, _, _| Ok(Vec::new()));
        assert!(matches!(next, Next::Lost(_)));
        let next = waiting().next(0, |_, _, _| Ok(vec![entry(2)]));
        assert!(matches!(next, Next::Lost(_)), "another one");
    }

    #[test]
    fn actions_outlive_the_deliveries_before_them() {
        let left = waiting().drop_deliveries();
        assert!(matches!(left[..], [Action::Passed { position: 3 }]));
    }
}
