//! Actions of the group that the replicator has not got yet. The first of them deliver entries whose payloads stayed in
//! the log when the process began; the engine reads these a slice at a time. All later actions wait behind them: the
//! order must hold.

use std::collections::VecDeque;

use trireme_group::{Action, Delivery, Position};
use trireme_mutants::{Mutant, planted};
use trireme_replicator::{History, Unread};

use crate::engine::{Engine, Failure};
use crate::host::Host;
use crate::thresholds::Thresholds;

/// Time until the next try if the log is unreadable for a moment.
const RETRY_MS: u64 = 100;

/// The waiting actions, in order.
pub(crate) struct Undelivered {
    actions: VecDeque<Action>,
    /// Bytes that are delivered in one go.
    slice_bytes: usize,
    /// Bytes that are read at once.
    read_bytes: usize,
    /// When the next slice is due; None: nothing waits.
    due_ms: Option<u64>,
}

impl Undelivered {
    /// Returns an empty queue. `queue_bytes`: the bound of the replicator's queues in memory
    /// ([`trireme_replicator::Options::queue_bytes`]).
    pub fn new(queue_bytes: usize, thresholds: &Thresholds) -> Undelivered {
        let slice_bytes = thresholds.slice_bytes.min(queue_bytes).max(1);
        Undelivered {
            actions: VecDeque::new(),
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
            self.actions.push_back(action);
            return None;
        }
        Some(action)
    }
}

impl Engine {
    /// Tells the replicator the waiting actions, until `room_bytes` are used up. Returns false if it has heard nothing.
    pub(crate) fn deliver_waiting(
        &mut self,
        now_ms: u64,
        host: &mut dyn Host,
        room_bytes: &mut usize,
    ) -> bool {
        let mut any = false;
        while *room_bytes > 0 && self.failed.is_none() {
            let Some(link) = &mut self.link else { break };
            let waiting = &mut link.undelivered;
            if waiting.due_ms.is_some_and(|due_ms| due_ms > now_ms) {
                return any; // the log cannot be read yet
            }
            let Some(next) = waiting.actions.pop_front() else {
                break;
            };
            let bytes = match next {
                Action::DeliverFromLog { first, last } => {
                    match self.deliver_from_log(now_ms, first, last, host) {
                        Some(bytes) => bytes,
                        None => return any,
                    }
                }
                other => {
                    let bytes = match &other {
                        Action::Deliver { delivery, .. } => payload_bytes(delivery),
                        _ => 0,
                    };
                    self.carry_out_group(now_ms, other, host);
                    bytes
                }
            };
            *room_bytes = room_bytes.saturating_sub(bytes.max(1));
            self.carry_out(now_ms, host);
            any = true;
        }
        if let Some(link) = &mut self.link {
            let waits = !link.undelivered.is_empty();
            link.undelivered.due_ms = waits.then_some(now_ms);
        }
        any
    }

    /// Delivers the first of these entries. Returns the number of bytes; None if the entries cannot be read.
    fn deliver_from_log(
        &mut self,
        now_ms: u64,
        first: Position,
        last: Position,
        host: &mut dyn Host,
    ) -> Option<usize> {
        let link = self.link.as_mut()?;
        let piece_bytes = link.undelivered.read_bytes;
        let found = link.storage.read_back(first, last, piece_bytes);
        let found = found.and_then(|found| {
            let at = found.iter().map(|(position, _)| *position);
            let is_it = !found.is_empty() && at.eq((first..).take(found.len()));
            let not_there = || Unread::Lost("it is not there".to_owned());
            is_it.then_some(found).ok_or_else(not_there)
        });
        let found = match found {
            Ok(found) => found,
            Err(Unread::NotNow) => {
                let again = Action::DeliverFromLog { first, last };
                link.undelivered.actions.push_front(again);
                link.undelivered.due_ms = Some(now_ms + RETRY_MS);
                return None;
            }
            Err(Unread::Lost(error)) => {
                self.failed.get_or_insert_with(|| Failure {
                    text: format!("the write-set log cannot be read at position {first}: {error}"),
                    is_lack: true,
                });
                return None;
            }
        };
        let next = first + found.len() as Position;
        if next <= last {
            let rest = Action::DeliverFromLog { first: next, last };
            link.undelivered.actions.push_front(rest);
        }
        let mut bytes = 0;
        for (position, delivery) in found {
            bytes += payload_bytes(&delivery);
            self.deliver(now_ms, position, delivery, host);
            self.carry_out(now_ms, host);
        }
        Some(bytes)
    }

    /// Drops the waiting deliveries, because the log begins anew or the group has ended. The replicator still hears all
    /// other actions that wait.
    pub(crate) fn drop_deliveries(&mut self, now_ms: u64, host: &mut dyn Host) {
        let Some(link) = &mut self.link else { return };
        for action in std::mem::take(&mut link.undelivered.actions) {
            let is_delivery = |action: &Action| {
                matches!(
                    action,
                    Action::Deliver { .. } | Action::DeliverFromLog { .. }
                )
            };
            if !is_delivery(&action) {
                self.carry_out_group(now_ms, action, host);
                self.carry_out(now_ms, host);
            }
        }
    }
}

fn payload_bytes(delivery: &Delivery) -> usize {
    match delivery {
        Delivery::Submission { payload, .. } => payload.len(),
        Delivery::Configuration(_) => 0,
    }
}
