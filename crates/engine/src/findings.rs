//! The findings of the log's reads: damaged entries, a read error that was not reported yet, and the running checksums of
//! large entries that are read in parts.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use trireme_group::{EntryHead, NotNow, Position};
use trireme_log::LogError;
use trireme_replicator::Seqno;

/// Maximum of running checksums that are kept, one per reader of a large entry.
const READERS_MAX: usize = 64;

/// The state of large entries that are read in parts.
#[derive(Default)]
struct LargeReads {
    /// Running checksums of readers that request one part after the other, oldest first: position, offset, CRC-32C of
    /// the payload up to that offset.
    read_up_to: VecDeque<(Position, u32, u32)>,
    /// Positions of entries with payloads that differ from the written bytes, or could not be read.
    damaged: BTreeSet<Position>,
}

impl LargeReads {
    /// Forgets entries above `after`: the log has dropped them, and other entries take their places.
    fn truncate(&mut self, after: Position) {
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

/// The findings. Readers hold the log by `&`, so the fields are cells.
#[derive(Default)]
pub(crate) struct Findings {
    /// The last read error that was not reported yet.
    error: RefCell<Option<LogError>>,
    /// Large entries that are read in parts.
    large: RefCell<LargeReads>,
    /// Others get nothing up to this seqno: it cannot be read.
    unreadable: Cell<Seqno>,
    /// Number of parts of large entries that were read.
    parts_read: Cell<u64>,
    /// Names this log, and its suffix.
    token: Arc<()>,
}

impl Findings {
    /// Forgets the entries, since the log begins anew.
    pub fn forget(&mut self) {
        self.unreadable.set(0);
        self.large = RefCell::default();
        self.token = Arc::default();
    }

    /// Forgets entries above `after`, which the log has dropped.
    pub fn truncate(&mut self, after: Position) {
        self.large.get_mut().truncate(after);
        self.token = Arc::default();
    }

    /// Returns the token of this log and its suffix: bytes that were read with another one no longer count.
    pub fn token(&self) -> &Arc<()> {
        &self.token
    }

    /// Returns true if the entry at `position` is known to be damaged or unreadable.
    pub fn is_damaged(&self, position: Position) -> bool {
        self.large.borrow().damaged.contains(&position)
    }

    /// Notes that the entry at `position` must not be read again.
    pub fn note_damaged(&self, position: Position) {
        self.large.borrow_mut().damaged.insert(position);
    }

    /// Takes in a part of a large entry, by its length and its CRC-32C. Returns false if it was the last part and the
    /// checksum of all parts is wrong: the entry is not read again, and `damage` is the error to report.
    pub fn is_intact(
        &self,
        head: &EntryHead,
        offset: u32,
        part: (u32, u32),
        damage: impl FnOnce() -> Option<LogError>,
    ) -> bool {
        self.parts_read.set(self.parts_read.get() + 1);
        let position = head.entry.position;
        let is_intact = (self.large.borrow_mut()).take_in(position, head, offset, part);
        if !is_intact {
            if let Some(error) = damage() {
                self.note_error(error);
            }
            self.note_damaged(position);
        }
        is_intact
    }

    /// Returns the number of parts that were read.
    pub fn parts_read(&self) -> u64 {
        self.parts_read.get()
    }

    /// Notes that others get nothing up to this seqno.
    pub fn note_unreadable(&self, seqno: Seqno) {
        self.unreadable.set(self.unreadable.get().max(seqno));
    }

    /// Returns the seqno up to which others get nothing.
    pub fn unreadable(&self) -> Seqno {
        self.unreadable.get()
    }

    /// Notes a read error. Err: it may go away. Inner Err: the entry cannot be read, now or later.
    pub fn unless_short<T>(&self, read: Result<T, LogError>) -> Result<Result<T, String>, NotNow> {
        let error = match read {
            Ok(read) => return Ok(Ok(read)),
            Err(error) => error,
        };
        let (is_short, text) = (error.is_shortage(), error.to_string());
        self.note_error(error);
        match is_short {
            true => Err(NotNow),
            false => Ok(Err(text)),
        }
    }

    /// Returns the read error that was noted since the last call, if any.
    pub fn take_error(&mut self) -> Option<LogError> {
        self.error.take()
    }

    /// A lost entry must be reported: a shortage does not replace it.
    fn note_error(&self, error: LogError) {
        let mut noted = self.error.borrow_mut();
        if noted.as_ref().is_none_or(LogError::is_shortage) {
            *noted = Some(error);
        }
    }
}
