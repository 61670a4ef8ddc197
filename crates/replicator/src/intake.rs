//! The entries that were delivered and are not processed yet, because the node is paused or has no control state. The
//! intake also knows how far the group has delivered, and how far it has committed.
//!
//! In: deliveries, and losses of the primary component. Out: the same, in order. Payloads are kept within a bound.

use std::collections::VecDeque;

use trireme_group::{Configuration, Delivery, Member, Position};

use crate::payload::{Memory, Missing, Payload};

/// An input that waits for its turn.
#[derive(Debug, PartialEq)]
pub(crate) enum Entry {
    Delivered(Delivery),
    /// The primary component was lost behind all entries before; these members are reachable.
    NonPrimary(Vec<Member>),
}

impl Entry {
    /// Returns the number of bytes that stand for the time to process this entry: its payload, and a constant, since
    /// many small entries take time, too.
    pub(crate) fn cost_bytes(&self) -> usize {
        const ENTRY_BYTES: usize = 1 << 10;
        match self {
            Entry::Delivered(Delivery::Submission { payload, .. }) => ENTRY_BYTES + payload.len(),
            Entry::Delivered(Delivery::Configuration(_)) | Entry::NonPrimary(_) => ENTRY_BYTES,
        }
    }
}

/// The commit point is unknown: any number of entries may be on their way.
const UNKNOWN: Position = Position::MAX;

struct Waiting {
    position: Position,
    /// None: it must be read back.
    entry: Option<Entry>,
    payload: Payload,
}

/// Entries in order of position. From the front on, payloads are in memory up to some entry; behind it, payloads of
/// write-sets are only in the log.
#[derive(Default)]
pub(crate) struct Intake {
    entries: VecDeque<Waiting>,
    /// Number of entries whose payloads are only in the log.
    in_log: usize,
    /// The group has delivered or passed over everything up to here.
    delivered_to: Position,
    /// The group knows that everything up to here is committed, on this node or not.
    committed_to: Position,
}

impl Intake {
    /// Starts over for a new connection.
    pub(crate) fn start_over(&mut self) {
        *self = Intake::default();
    }

    /// Begins above this position, because the group's log begins anew.
    pub(crate) fn begin_above(&mut self, position: Position) {
        self.clear();
        self.delivered_to = position;
    }

    /// Returns the position up to which the group has delivered.
    pub(crate) fn delivered_to(&self) -> Position {
        self.delivered_to
    }

    /// Notes that everything up to here is delivered, or delivers nothing.
    pub(crate) fn note_delivered(&mut self, position: Position) {
        self.delivered_to = position;
    }

    /// Notes the commit point; None: the group does not know it. Returns true if it is known again.
    pub(crate) fn note_commit(&mut self, position: Option<Position>) -> bool {
        let before = std::mem::replace(&mut self.committed_to, position.unwrap_or(UNKNOWN));
        before == UNKNOWN && position.is_some()
    }

    /// Returns the number of entries that are on their way: this node's log lacks them, or they are still being read
    /// from it.
    pub(crate) fn to_come(&self) -> u64 {
        self.committed_to.saturating_sub(self.delivered_to)
    }

    /// Adds an entry that waits for its turn.
    pub(crate) fn push(&mut self, position: Position, delivery: Delivery, memory: &Memory) {
        let payload = match &delivery {
            Delivery::Submission { payload, .. } => Payload::here(memory, payload.len()),
            Delivery::Configuration(_) => Payload::None,
        };
        self.entries.push_back(Waiting {
            position,
            entry: Some(Entry::Delivered(delivery)),
            payload,
        });
    }

    /// Adds a loss of the primary component, behind all deliveries. Of two losses with nothing between them the later
    /// one counts.
    pub(crate) fn push_non_primary(&mut self, component: Vec<Member>) {
        let position = self.delivered_to;
        let entry = Some(Entry::NonPrimary(component));
        match self.entries.back_mut() {
            Some(last) if matches!(last.entry, Some(Entry::NonPrimary(_))) => last.entry = entry,
            _ => self.entries.push_back(Waiting {
                position,
                entry,
                payload: Payload::None,
            }),
        }
    }

    /// Takes out the last loss of the primary component that waits, with its component.
    pub(crate) fn take_non_primary(&mut self) -> Option<Vec<Member>> {
        let is_one = |waiting: &Waiting| matches!(waiting.entry, Some(Entry::NonPrimary(_)));
        let at = self.entries.iter().rposition(is_one)?;
        match self.entries.remove(at)?.entry {
            Some(Entry::NonPrimary(component)) => Some(component),
            _ => None, // `is_one` has seen it
        }
    }

    /// Drops the payload of the last entry, if it has no room, or if an earlier payload was dropped.
    pub(crate) fn shed(&mut self, is_full: bool) {
        let Some(last) = (self.entries.back_mut()).filter(|_| is_full || self.in_log > 0) else {
            return;
        };
        let Some(Entry::Delivered(Delivery::Submission { payload, .. })) = &last.entry else {
            return;
        };
        last.payload = Payload::InLog {
            position: last.position,
            bytes: payload.len(),
        };
        last.entry = None;
        self.in_log += 1;
    }

    /// Returns the next input; None if there is none, or it must be read back.
    pub(crate) fn front(&self) -> Option<&Entry> {
        self.entries.front()?.entry.as_ref()
    }

    /// Returns true if the next entry must be read back.
    pub(crate) fn next_is_missing(&self) -> bool {
        (self.entries.front()).is_some_and(|next| next.payload.is_in_log())
    }

    /// Returns the next entry, if it must be read back.
    pub(crate) fn missing(&self) -> Option<Missing> {
        let next = self.entries.front()?;
        let Payload::InLog { position, bytes } = next.payload else {
            return None;
        };
        let last = self.entries.back().map_or(position, |last| last.position);
        Some(Missing {
            first: position,
            last,
            bytes,
            is_next: true,
        })
    }

    /// Takes in entries that were read back, from the first missing one on. Returns their number: 0 if that one is not
    /// among them.
    pub(crate) fn restore(&mut self, found: Vec<(Position, Delivery)>, memory: &Memory) -> usize {
        let mut found = found.into_iter().peekable();
        let mut restored = 0;
        for entry in &mut self.entries {
            let Payload::InLog { position, bytes } = entry.payload else {
                continue; // its payload is not missing
            };
            while found.next_if(|(at, _)| *at < position).is_some() {}
            let read = found.next_if(|(at, delivery)| {
                let is_it = |payload: &bytes::Bytes| payload.len() == bytes;
                *at == position
                    && matches!(delivery, Delivery::Submission { payload, .. } if is_it(payload))
            });
            let Some((_, delivery)) = read else { break };
            entry.entry = Some(Entry::Delivered(delivery));
            entry.payload = Payload::here(memory, bytes);
            self.in_log -= 1;
            restored += 1;
        }
        restored
    }

    pub(crate) fn pop(&mut self) -> Option<(Position, Entry)> {
        self.front()?;
        let next = self.entries.pop_front()?;
        next.entry.map(|entry| (next.position, entry))
    }

    /// Forgets the entries up to `position`.
    pub(crate) fn drop_up_to(&mut self, position: Position) {
        let keeps = |entry: &Waiting| entry.position > position;
        self.entries.retain(keeps);
        let is_in_log = |entry: &&Waiting| entry.payload.is_in_log();
        self.in_log = self.entries.iter().filter(is_in_log).count();
    }

    /// Forgets all entries that wait.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.in_log = 0;
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the configurations that wait, in order.
    pub(crate) fn configurations(
        &self,
    ) -> impl DoubleEndedIterator<Item = (Position, &Configuration)> {
        (self.entries.iter()).filter_map(|waiting| match &waiting.entry {
            Some(Entry::Delivered(Delivery::Configuration(configuration))) => {
                Some((waiting.position, configuration))
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use trireme_group::{Incarnation, SubmissionId};

    use super::*;

    fn delivery(position: Position, bytes: usize) -> Delivery {
        let id = SubmissionId {
            incarnation: Incarnation::default(),
            number: position,
        };
        let payload = Bytes::from(vec![position as u8; bytes]);
        Delivery::Submission { id, payload }
    }

    #[test]
    fn from_the_first_without_room_on_all_are_read_back_in_order() {
        let memory = Memory::default();
        let mut intake = Intake::default();
        for position in 1..=6 {
            match position {
                4 => {
                    let configuration = Delivery::Configuration(Configuration::default());
                    intake.push(position, configuration, &memory);
                }
                _ => intake.push(position, delivery(position, 10), &memory),
            }
            intake.shed(memory.taken_bytes() > 15);
        }
        assert_eq!(memory.taken_bytes(), 10);
        assert_eq!(intake.configurations().count(), 1);
        assert_eq!(intake.pop(), Some((1, Entry::Delivered(delivery(1, 10)))));
        assert!(intake.next_is_missing());
        assert_eq!(intake.pop(), None);
        let missing = intake.missing().expect("it is");
        assert_eq!((missing.first, missing.last), (2, 6));
        let another = vec![(2, delivery(2, 11))];
        assert_eq!(intake.restore(another, &memory), 0, "not what was there");
        let found = [1, 2, 3, 5].map(|position| (position, delivery(position, 10)));
        assert_eq!(intake.restore(found.to_vec(), &memory), 3);
        assert_eq!(memory.taken_bytes(), 30);
        for position in [2, 3] {
            let next = Entry::Delivered(delivery(position, 10));
            assert_eq!(intake.pop(), Some((position, next)));
        }
        assert!(matches!(
            intake.pop(),
            Some((4, Entry::Delivered(Delivery::Configuration(_))))
        ));
        assert_eq!(intake.pop(), Some((5, Entry::Delivered(delivery(5, 10)))));
        assert_eq!(intake.missing().map(|missing| missing.first), Some(6));
        intake.drop_up_to(6);
        assert!(intake.is_empty());
        assert_eq!(memory.taken_bytes(), 0);
    }

    #[test]
    fn what_is_committed_and_not_delivered_is_to_come() {
        let mut intake = Intake::default();
        intake.note_delivered(7);
        assert!(!intake.note_commit(Some(9)));
        assert_eq!(intake.to_come(), 2);
        assert!(!intake.note_commit(None));
        assert!(intake.to_come() > 1 << 40, "any number");
        assert!(intake.note_commit(Some(7)), "it is known again");
        intake.push_non_primary(Vec::new());
        intake.begin_above(3);
        assert_eq!((intake.to_come(), intake.len()), (4, 0));
    }
}
