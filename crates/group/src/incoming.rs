//! Order records that are not in the log yet, because the payload of the first one has not come. Their memory is
//! bounded: a record without room is dropped, and requested again when the first payload is there.

use std::collections::VecDeque;
use std::ops::Deref;

use crate::entry::Body;
use crate::message::{WireBody, WireEntry};
use crate::thresholds::Thresholds;

/// Approximate memory of a record without its payload, in bytes.
const RECORD_BYTES: usize = 128;

/// The records, contiguous from the end of the log on.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Incoming {
    records: VecDeque<WireEntry>,
    bytes: usize,
}

impl Deref for Incoming {
    type Target = VecDeque<WireEntry>;

    fn deref(&self) -> &VecDeque<WireEntry> {
        &self.records
    }
}

impl Incoming {
    /// True if there is room for one more record; the first one always has room, whatever its size.
    pub fn has_room(&self, record: &WireEntry, thresholds: &Thresholds) -> bool {
        let bytes = self.bytes.saturating_add(size_bytes(record));
        self.records.is_empty()
            || self.records.len() < thresholds.incoming_records
                && bytes <= thresholds.incoming_bytes
    }

    /// True if there is room to replace the record at this index by `record`, the same entry with its payload. The
    /// first one always has room.
    pub fn has_room_at(&self, index: usize, record: &WireEntry, thresholds: &Thresholds) -> bool {
        let known = self.records.get(index).map_or(0, size_bytes);
        let bytes = (self.bytes - known).saturating_add(size_bytes(record));
        index == 0 || bytes <= thresholds.incoming_bytes
    }

    pub fn push_back(&mut self, record: WireEntry) {
        self.bytes += size_bytes(&record);
        self.records.push_back(record);
    }

    pub fn pop_front(&mut self) -> Option<WireEntry> {
        let record = self.records.pop_front()?;
        self.bytes -= size_bytes(&record);
        Some(record)
    }

    /// Replaces the record at this index by another form of the same entry.
    pub fn replace(&mut self, index: usize, record: WireEntry) {
        if let Some(known) = self.records.get_mut(index) {
            self.bytes += size_bytes(&record);
            self.bytes -= size_bytes(known);
            *known = record;
        }
    }

    pub fn truncate(&mut self, count: usize) {
        while self.records.len() > count {
            let last = self.records.pop_back();
            self.bytes -= last.as_ref().map_or(0, size_bytes);
        }
    }

    pub fn clear(&mut self) {
        *self = Incoming::default();
    }
}

/// Approximate memory of a record in bytes; a reference takes no memory for its payload.
fn size_bytes(record: &WireEntry) -> usize {
    RECORD_BYTES
        + match &record.body {
            WireBody::Full(Body::Submission { payload, .. }) => payload.len(),
            WireBody::Full(Body::Configuration(configuration)) => {
                configuration.members.len() * RECORD_BYTES
            }
            WireBody::Full(_) | WireBody::Reference { .. } => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Incarnation, Position, SubmissionId, Term};

    fn record(position: Position, bytes: usize) -> WireEntry {
        let id = SubmissionId {
            incarnation: Incarnation::default(),
            number: 1,
        };
        let payload = vec![0; bytes].into();
        WireEntry {
            position,
            term: Term::default(),
            body: WireBody::Full(Body::Submission { id, payload }),
        }
    }

    #[test]
    fn records_take_a_bounded_memory_but_for_the_first() {
        let thresholds = Thresholds {
            incoming_bytes: 4 * RECORD_BYTES,
            incoming_records: 3,
            ..Thresholds::default()
        };
        let mut incoming = Incoming::default();
        let take = |incoming: &mut Incoming, position, bytes| {
            let record = record(position, bytes);
            let has_room = incoming.has_room(&record, &thresholds);
            if has_room {
                incoming.push_back(record);
            }
            has_room
        };
        assert!(
            take(&mut incoming, 1, 1 << 20),
            "the first, whatever it takes"
        );
        assert!(!take(&mut incoming, 2, 0));
        incoming.replace(0, record(1, 0));
        assert!(take(&mut incoming, 2, RECORD_BYTES));
        assert!(!take(&mut incoming, 3, 1), "too many bytes");
        assert!(take(&mut incoming, 3, 0));
        incoming.truncate(2);
        incoming.replace(1, record(2, 0));
        assert!(take(&mut incoming, 3, 1));
        assert!(!take(&mut incoming, 4, 0), "too many");
        let full = |position, bytes| record(position, bytes);
        let has_room_at =
            |index, bytes| incoming.has_room_at(index, &full(index as u64 + 1, bytes), &thresholds);
        assert!(has_room_at(1, RECORD_BYTES - 1) && !has_room_at(1, RECORD_BYTES));
        assert!(has_room_at(0, 1 << 20), "the first, whatever it takes");
        while incoming.pop_front().is_some() {}
        assert_eq!(incoming.bytes, 0);
    }
}
