//! The in-memory index of the segments: the place of every position, the outcomes, and the log checkpoints. Recovery
//! builds it from the files; each append extends it. It holds no payloads.

use std::collections::VecDeque;

use crate::format::{RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES};
use crate::outcome::Outcomes;

/// Place of an entry's record in its segment, and length of its payload. Eight bytes per entry: offsets fit, since a
/// record begins within the first GiB of its segment.
#[derive(Clone, Copy)]
struct Slot {
    offset: u32,
    len: u32,
}

/// One segment file.
pub(crate) struct Segment {
    pub number: u64,
    /// Address of the file's first byte.
    pub start: u64,
    /// Length of the file, including bytes still in the write buffer.
    pub len: u64,
    /// Position of `slots[0]`, or of the next entry if there is no slot.
    pub first_position: u64,
    slots: Vec<Slot>,
}

impl Segment {
    /// Returns the address of the byte after the segment.
    pub(crate) fn end(&self) -> u64 {
        // No overflow: a header with a start address above the limit is refused.
        self.start + self.len
    }
}

/// The place of a record.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub segment: u64,
    /// Address of the segment's first byte.
    pub start: u64,
    /// Offset of the record in the segment's file.
    pub offset: u64,
    /// Bytes of the body.
    pub len: u32,
}

impl Place {
    /// Returns the address of the byte after the body.
    fn body_end(&self) -> u64 {
        self.start + self.offset + RECORD_HEADER_BYTES + u64::from(self.len)
    }
}

/// The log's contents without the payloads.
#[derive(Default)]
pub(crate) struct Index {
    /// Segments, oldest first. The first position of a segment is never below that of the one before. Entries of
    /// consecutive segments have consecutive positions.
    pub segments: VecDeque<Segment>,
    pub outcomes: Outcomes,
    /// Position and place of each log checkpoint, in order of position, and then of place.
    snapshots: VecDeque<(u64, Place)>,
    /// `None` until the first entry of a created log.
    pub next_position: Option<u64>,
}

impl Index {
    /// The numbers of all segments, in their order.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.segments.iter().map(|segment| segment.number).collect()
    }

    pub(crate) fn begin_segment(&mut self, number: u64, start: u64) {
        let first_position = self.next_position.unwrap_or(0);
        let len = SEGMENT_HEADER_BYTES;
        self.segments.push_back(Segment {
            number,
            start,
            len,
            first_position,
            slots: Vec::new(),
        });
    }

    /// Returns the address of the byte after the last one.
    pub(crate) fn end(&self) -> u64 {
        self.segments.back().map_or(0, Segment::end)
    }

    fn segment(&self, number: u64) -> Option<&Segment> {
        let at = self.segments.partition_point(|s| s.number < number);
        self.segments.get(at).filter(|found| found.number == number)
    }

    /// Returns the address of the byte after segment `number`; 0 if there is none.
    pub(crate) fn segment_end(&self, number: u64) -> u64 {
        self.segment(number).map_or(0, Segment::end)
    }

    /// Adds an entry at `offset` of the last segment; its position is the next one.
    pub(crate) fn push_entry(&mut self, header: &RecordHeader, offset: u64) {
        if self.next_position.is_none() {
            for segment in &mut self.segments {
                segment.first_position = header.position;
            }
        }
        self.next_position = Some(header.position + 1);
        if let Some(segment) = self.segments.back_mut() {
            segment.slots.push(Slot {
                offset: offset as u32,
                len: header.body_len,
            });
        }
    }

    /// Adds a log checkpoint at `offset` of the last segment.
    pub(crate) fn push_snapshot(&mut self, header: &RecordHeader, offset: u64) {
        if let Some(segment) = self.segments.back() {
            let len = header.body_len;
            let place = Place {
                segment: segment.number,
                start: segment.start,
                offset,
                len,
            };
            // A checkpoint at an earlier position than the newest replaces those above it. One at the same position is
            // kept: it may be flushed, and the new one is not.
            self.drop_snapshots_from(header.position.saturating_add(1));
            self.snapshots.push_back((header.position, place));
        }
    }

    fn drop_snapshots_from(&mut self, position: u64) {
        self.snapshots
            .truncate(self.snapshots.partition_point(|(p, _)| *p < position));
    }

    pub(crate) fn first_position(&self) -> Option<u64> {
        let first = self.segments.front()?.first_position;
        self.next_position
            .filter(|next| first < *next)
            .map(|_| first)
    }

    pub(crate) fn last_position(&self) -> Option<u64> {
        self.first_position()?;
        self.next_position.map(|next| next - 1)
    }

    /// Returns the place of the entry at `position`.
    pub(crate) fn place(&self, position: u64) -> Option<Place> {
        let after = self
            .segments
            .partition_point(|s| s.first_position <= position);
        let segment = &self.segments[after.checked_sub(1)?];
        let slot = segment
            .slots
            .get(usize::try_from(position - segment.first_position).ok()?)?;
        let offset = u64::from(slot.offset);
        Some(Place {
            segment: segment.number,
            start: segment.start,
            offset,
            len: slot.len,
        })
    }

    /// Returns the lowest position with a record that begins at `address` or above; the next position if there is none.
    pub(crate) fn first_from(&self, address: u64) -> u64 {
        let at = self.segments.partition_point(|s| s.end() <= address);
        let Some(segment) = self.segments.get(at) else {
            return self.next_position.unwrap_or(0);
        };
        let slot = segment
            .slots
            .partition_point(|s| segment.start + u64::from(s.offset) < address);
        segment.first_position + slot as u64
    }

    /// Returns the newest checkpoint of a position of at most `position`.
    pub(crate) fn snapshot(&self, position: u64) -> Option<(u64, Place)> {
        let after = self.snapshots.partition_point(|(p, _)| *p <= position);
        self.snapshots.get(after.checked_sub(1)?).copied()
    }

    /// Returns the checkpoint that a restart finds, even after a power loss: the newest below address `flushed`. If
    /// there is none, returns the oldest.
    pub(crate) fn lasting_snapshot(&self, flushed: u64) -> Option<(u64, Place)> {
        let is_flushed = |(_, place): &&(u64, Place)| place.body_end() <= flushed;
        let lasting = self.snapshots.iter().rev().find(is_flushed);
        lasting.or(self.snapshots.front()).copied()
    }

    /// Returns true if the last segment lacks a checkpoint, and as many bytes have come since the last checkpoint as
    /// that one has: checkpoints take at most half of the log, however large they are and however short the segments.
    pub(crate) fn wants_snapshot(&self) -> bool {
        let Some(last) = self.segments.back() else {
            return false;
        };
        self.snapshots.back().is_none_or(|(_, place)| {
            let end = place.start + place.offset + u64::from(place.len);
            place.segment != last.number && self.end() - end >= u64::from(place.len)
        })
    }

    /// Forgets everything above `position`; the next entry has the position after it.
    pub(crate) fn truncate_after(&mut self, position: u64) {
        let next = position.saturating_add(1);
        for segment in self.segments.iter_mut().rev() {
            if segment.first_position >= next {
                segment.slots.clear();
                segment.first_position = next;
            } else {
                segment
                    .slots
                    .truncate((next - segment.first_position) as usize);
                break;
            }
        }
        self.outcomes.truncate_after(position);
        self.drop_snapshots_from(next);
        self.next_position = Some(next);
    }

    /// Forgets the oldest segment and returns its number; never forgets the last segment.
    pub(crate) fn drop_oldest(&mut self) -> Option<u64> {
        if self.segments.len() < 2 {
            return None;
        }
        let number = self.segments.pop_front()?.number;
        if let Some(first) = self.segments.front() {
            self.outcomes.drop_below(first.first_position);
        }
        self.snapshots.retain(|(_, place)| place.segment != number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    /// docs/log-format.md tells operators what `gcache.size` costs.
    #[test]
    fn an_entry_takes_as_much_memory_as_documented() {
        let outcome = size_of::<(u64, Outcome)>() + size_of::<(i64, u64)>();
        assert_eq!(size_of::<Slot>() + outcome, 56);
    }
}
