//! The write-set log, as the group reads it. Of a large entry, one read takes only the part that was requested. A read
//! of the whole entry would block everything else for seconds (measured: 0.7 to 2 s per GiB), and members replace a
//! leader that is silent for so long.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use trireme_group::{
    ENTRY_HEAD_BYTES, Entry, EntryHead, LogReader, NotNow, Position, SubmissionId, decode_entry,
    decode_entry_head,
};
use trireme_log::{Log, LogError};

use crate::storage::Storage;

/// Maximum of running checksums that are kept, one per reader of a large entry.
const READERS_MAX: usize = 64;
/// Length of the entry's head, which precedes the payload.
const HEAD_BYTES: u32 = ENTRY_HEAD_BYTES as u32;

/// The state of large entries that are read in parts.
#[derive(Default)]
pub(crate) struct LargeReads {
    /// Running checksums of readers that request one part after the other, oldest first: position, offset, CRC-32C of
    /// the payload up to that offset.
    read_up_to: VecDeque<(Position, u32, u32)>,
    /// Positions of entries with payloads that differ from the written bytes, or could not be read.
    damaged: BTreeSet<Position>,
}

impl LargeReads {
    /// Forgets entries above `after`: the log has dropped them, and other entries take their places.
    pub(crate) fn truncate(&mut self, after: Position) {
        self.read_up_to
            .retain(|(position, _, _)| *position <= after);
        self.damaged.retain(|position| *position <= after);
    }

    /// Takes in a part that was read, by its length and its CRC-32C. Returns false if it was the last part and the checksum
    /// of all parts is wrong.
    fn take_in(
        &mut self,
        position: Position,
        head: &EntryHead,
        offset: u32,
        (len, crc): (u32, u32),
    ) -> bool {
        let is_it = |known: &(Position, u32, u32)| (known.0, known.1) == (position, offset);
        let found = self.read_up_to.iter().position(is_it);
        let before = match found.and_then(|at| self.read_up_to.remove(at)) {
            _ if offset == 0 => 0,
            Some((_, _, crc)) => crc,
            None => return true, // a part that is requested again
        };
        let crc = crc32c::crc32c_combine(before, crc, len as usize);
        let until = offset.saturating_add(len);
        if until < head.len {
            if self.read_up_to.len() == READERS_MAX {
                self.read_up_to.pop_front();
            }
            self.read_up_to.push_back((position, until, crc));
            return true;
        }
        crc == head.digest
    }
}

impl Storage {
    /// Returns true if the entry at `position` is known to be damaged or unreadable.
    pub(crate) fn is_damaged(&self, position: Position) -> bool {
        self.large_reads.borrow().damaged.contains(&position)
    }

    /// Returns the log, if it holds a large entry at `position`.
    fn log_with_large(&self, position: Position) -> Option<&Log> {
        let log = self.log.as_ref()?;
        (log.len_at(position)? >= self.thresholds.large_read_bytes).then_some(log)
    }

    /// Takes in a part of an entry, as above. Returns false if the entry is damaged; it is not read again then.
    pub(crate) fn is_intact(&self, head: &EntryHead, offset: u32, part: (u32, u32)) -> bool {
        let position = head.entry.position;
        let mut reads = self.large_reads.borrow_mut();
        let is_intact = reads.take_in(position, head, offset, part);
        if !is_intact {
            self.note_damage(self.log.as_ref().and_then(|log| log.damage_at(position)));
            reads.damaged.insert(position);
        }
        is_intact
    }

    fn note_damage(&self, error: Option<LogError>) {
        let mut noted = self.read_error.borrow_mut();
        if noted.as_ref().is_none_or(LogError::is_shortage) {
            *noted = error.or(noted.take());
        }
    }
}

/// The length of a part, and its CRC-32C.
fn summed(part: &[u8]) -> (u32, u32) {
    (part.len() as u32, crc32c::crc32c(part))
}

impl LogReader for Storage {
    fn read(&self, position: Position) -> Result<Option<Entry>, NotNow> {
        let Some(log) = &self.log else {
            return Ok(None);
        };
        if self.is_damaged(position) {
            return Ok(None);
        }
        let bytes = self.unless_short(log.read(position))?;
        let bytes = bytes.ok().flatten().map(Bytes::from);
        Ok(bytes.and_then(|bytes| decode_entry(bytes).ok()))
    }

    fn len_bytes(&self, position: Position) -> Option<usize> {
        Some(self.log.as_ref()?.len_at(position)? as usize)
    }

    fn head(&self, position: Position) -> Result<Option<EntryHead>, NotNow> {
        if self.is_damaged(position) {
            return Ok(None);
        }
        let large = match self.log_with_large(position) {
            Some(log) => self.unless_short(log.peek(position, HEAD_BYTES))?,
            None => Ok(None),
        };
        let Ok(large) = large else {
            return Ok(None);
        };
        let head = large.and_then(|peek| {
            let entry = decode_entry_head(&peek.head).ok()?;
            (entry.position == position).then_some(EntryHead {
                entry,
                len: peek.len - HEAD_BYTES,
                digest: peek.rest_crc,
            })
        });
        if head.is_some() {
            return Ok(head);
        }
        let entry = self.read(position)?;
        if entry.is_none() && self.log_with_large(position).is_some() {
            // Do not read the whole entry again at the next request.
            self.large_reads.borrow_mut().damaged.insert(position);
        }
        Ok(entry.map(EntryHead::from))
    }

    fn read_part(
        &self,
        position: Position,
        id: SubmissionId,
        offset: u32,
        len: u32,
    ) -> Result<Option<Bytes>, NotNow> {
        let Some(log) = self.log_with_large(position) else {
            let entry = self.read(position)?;
            return Ok(entry.and_then(|entry| entry.payload_part(id, offset, len)));
        };
        let head = self.head(position)?;
        let Some(head) = head.filter(|head| head.entry.submission() == Some(id)) else {
            return Ok(None);
        };
        let from = HEAD_BYTES.saturating_add(offset);
        let part = self.unless_short(log.read_part(position, from..from.saturating_add(len)))?;
        self.parts_read.set(self.parts_read.get() + 1);
        let Ok(part) = part else {
            // The head may still be readable; without this note the same reader would be sent here again and again.
            self.large_reads.borrow_mut().damaged.insert(position);
            return Ok(None);
        };
        let is_intact = |part: &Vec<u8>| self.is_intact(&head, offset, summed(part));
        Ok(part.filter(is_intact).map(Bytes::from))
    }

    fn read_run(
        &self,
        from: Position,
        last: Position,
        max_bytes: usize,
    ) -> Result<Vec<Entry>, NotNow> {
        let Some(log) = &self.log else {
            return Ok(Vec::new());
        };
        if self.is_damaged(from) {
            return Ok(Vec::new());
        }
        let run = self.unless_short(log.read_between(from, last, max_bytes as u64))?;
        let entries = run.into_iter().flatten();
        let entries = entries.map(|item| decode_entry(Bytes::from(item.payload)).ok());
        Ok(entries.map_while(|entry| entry).collect())
    }
}
