//! Control states on their way to joiners. In: a state for a peer. Out: the parts that have room in the peer's send queue
//! now. A state may be larger than the queue: sent at once, its end would be dropped, and all other frames to the peer
//! with it. One state at a time for each peer: a new request replaces the last one.

use std::collections::BTreeMap;

use bytes::Bytes;
use trireme_group::Incarnation;
use trireme_replicator::ControlParts;

/// Time until a full queue is looked at again.
const PAUSE_MS: u64 = 10;
/// Beside a busy load a queue never becomes short: one part in each pause, 25 MB/s, is added to a queue up to so many
/// times its usual length.
const BUSY: usize = 8;

/// The states that are not sent whole yet.
#[derive(Debug)]
pub(crate) struct ControlStates {
    under_way: BTreeMap<Incarnation, ControlParts>,
    /// Time of the next look at the queues.
    due_ms: u64,
    /// See [`crate::Thresholds::control_queue_bytes`].
    queue_bytes: usize,
}

impl ControlStates {
    /// `queue_bytes`: the bytes of a send queue that parts may fill.
    pub(crate) fn new(queue_bytes: usize) -> ControlStates {
        ControlStates {
            under_way: BTreeMap::new(),
            due_ms: 0,
            queue_bytes,
        }
    }

    /// Takes in a state for a peer. Its first parts are due at once.
    pub(crate) fn begin(&mut self, to: Incarnation, parts: ControlParts) {
        self.under_way.insert(to, parts);
        self.due_ms = 0;
    }

    /// Returns the time at which [`Self::next`] has something to do.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        (!self.under_way.is_empty()).then_some(self.due_ms)
    }

    /// Returns the messages to send now. `queued_bytes` tells how much waits for a peer
    /// ([`crate::Host::queued_bytes`]); a state for a peer that is not connected is dropped.
    pub(crate) fn next(
        &mut self,
        now_ms: u64,
        queued_bytes: impl Fn(Incarnation) -> Option<usize>,
    ) -> Vec<(Incarnation, Bytes)> {
        let mut messages = Vec::new();
        if self.due_ms().is_none_or(|due_ms| now_ms < due_ms) {
            return messages;
        }
        let usual = self.queue_bytes;
        self.under_way.retain(|to, parts| {
            let Some(mut bytes) = queued_bytes(*to) else {
                return false;
            };
            let mut limit = usual.saturating_mul(BUSY);
            while bytes < limit {
                let Some(message) = parts.next() else {
                    return false;
                };
                bytes += message.len();
                messages.push((*to, message));
                limit = usual;
            }
            true
        });
        self.due_ms = now_ms + PAUSE_MS;
        messages
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use trireme_group::Uuid;

    use super::*;

    const PEER: Incarnation = Incarnation(Uuid([2; 16]));
    /// The bound of a send queue (`trireme_transport`).
    const LIMIT_BYTES: usize = 64 << 20;
    const QUEUE_BYTES: usize = 4 << 20;

    fn state(round: u64, bytes: usize) -> ControlParts {
        ControlParts::new(round, vec![7; bytes].into(), 256 << 10)
    }

    #[test]
    fn a_state_larger_than_the_send_queue_arrives_whole() {
        let mut states = ControlStates::new(QUEUE_BYTES);
        states.begin(PEER, state(1, 3 * LIMIT_BYTES));
        let expected: Vec<Bytes> = state(1, 3 * LIMIT_BYTES).collect();
        let (queued, mut sent) = (Cell::new(0), Vec::new());
        let mut now_ms = 5;
        while let Some(due_ms) = states.due_ms() {
            now_ms = due_ms.max(now_ms);
            for (to, message) in states.next(now_ms, |_| Some(queued.get())) {
                assert_eq!(to, PEER);
                queued.set(queued.get() + message.len());
                sent.push(message);
            }
            assert!(queued.get() <= 2 * QUEUE_BYTES, "{queued:?}");
            // The line takes 1 MiB in each pause.
            queued.set(queued.get().saturating_sub(1 << 20));
            assert!(now_ms < 10_000, "it does not end");
        }
        assert_eq!(sent, expected);
    }

    #[test]
    fn a_small_state_leaves_at_once_and_a_new_request_begins_anew() {
        let mut states = ControlStates::new(QUEUE_BYTES);
        states.begin(PEER, state(1, 1_000));
        assert_eq!(states.next(5, |_| Some(0)).len(), 1);
        assert_eq!(states.due_ms(), None);
        states.begin(PEER, state(2, 2 * QUEUE_BYTES));
        let first = states.next(6, |_| Some(0)).len();
        assert_eq!(
            states.next(7, |_| Some(0)),
            [],
            "not before the pause is over"
        );
        states.begin(PEER, state(3, 2 * QUEUE_BYTES));
        assert_eq!(states.next(8, |_| Some(0)).len(), first);
    }

    #[test]
    fn a_busy_queue_takes_a_part_at_a_time_and_a_full_one_none() {
        let mut states = ControlStates::new(QUEUE_BYTES);
        states.begin(PEER, state(1, 2 * QUEUE_BYTES));
        assert_eq!(states.next(0, |_| Some(QUEUE_BYTES)).len(), 1);
        assert_eq!(states.next(10, |_| Some(LIMIT_BYTES)), [], "no room");
        assert_eq!(states.next(20, |_| Some(usize::MAX)), [], "overflowed");
        assert_eq!(states.next(30, |_| None), [], "not connected");
        assert_eq!(states.due_ms(), None, "the state is dropped");
    }
}
