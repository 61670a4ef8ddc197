//! Reads entries and log checkpoints, whole or in parts, and answers from the index. Bytes from a file are
//! verified by the record's checksum, except those of parts.

use std::io;
use std::ops::{Range, RangeInclusive};

use crate::counters::Counters;
use crate::error::LogError;
use crate::format::RECORD_HEADER_BYTES;
use crate::index::Place;
use crate::job::{PartJob, Piece, RunItem, RunJob, Source, damage, read_error, within};
use crate::log::Log;
use crate::outcome::Outcome;
use crate::peek::Peek;

impl Log {
    // ---- entries ----

    /// Reads the payload at `position`; `None` if the log does not hold it.
    pub fn read(&self, position: u64) -> Result<Option<Vec<u8>>, LogError> {
        match self.index.place(position) {
            Some(place) => self.read_place(place).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the outcome of `position`, if recorded.
    pub fn outcome(&self, position: u64) -> Option<Outcome> {
        self.index.outcomes.get(position)
    }

    /// Returns the position of the entry with `seqno`.
    pub fn position_of_seqno(&self, seqno: i64) -> Option<u64> {
        self.index.outcomes.position_of(seqno)
    }

    /// Reads entries from `position` on, until their payloads exceed `max_bytes`, but at least one if the log holds it.
    /// The run ends before an entry that cannot be read; if that is the first one, it is an error. The run also
    /// includes entries beyond [`Log::served_from`]: the caller decides whom it serves.
    pub fn read_run(&self, position: u64, max_bytes: u64) -> Result<Vec<RunItem>, LogError> {
        self.read_between(position, u64::MAX, max_bytes)
    }

    /// As [`Log::read_run`], but ends with the entry at `last` at the latest.
    pub fn read_between(
        &self,
        position: u64,
        last: u64,
        max_bytes: u64,
    ) -> Result<Vec<RunItem>, LogError> {
        self.run_job(position..=last, max_bytes, false)?.run()
    }

    /// As [`Log::read_run`], from the entry with `seqno` on. Entries without a seqno between are included. Empty if the
    /// log does not hold the seqno.
    pub fn read_run_from_seqno(
        &self,
        seqno: i64,
        max_bytes: u64,
    ) -> Result<Vec<RunItem>, LogError> {
        match self.position_of_seqno(seqno) {
            Some(position) => self.read_run(position, max_bytes),
            None => Ok(Vec::new()),
        }
    }

    /// Reads the newest log checkpoint of a position of at most `position`, with its position.
    pub fn snapshot_at(&self, position: u64) -> Result<Option<(u64, Vec<u8>)>, LogError> {
        match self.index.snapshot(position) {
            Some((at, place)) => Ok(Some((at, self.read_place(place)?))),
            None => Ok(None),
        }
    }

    /// Returns the position of the oldest entry; `None`: the log is empty.
    pub fn first_position(&self) -> Option<u64> {
        self.index.first_position()
    }

    /// Returns the position of the newest entry; `None`: the log is empty.
    pub fn last_position(&self) -> Option<u64> {
        self.index.last_position()
    }

    /// Returns the position that the next entry must have; `None`: any (a log just created).
    pub fn next_position(&self) -> Option<u64> {
        self.index.next_position
    }

    /// Returns the lowest position within the newest `size_bytes`, which every member may request. The replicator
    /// decides which entries below it are given to others (they may be kept for this node only). Returns the next
    /// position if nothing is served.
    pub fn served_from(&self) -> u64 {
        self.index
            .first_from(self.index.end().saturating_sub(self.config.size_bytes))
    }

    /// Returns the lowest seqno served to others (`wsrep_local_cached_downto`); `None`: none.
    pub fn first_seqno(&self) -> Option<i64> {
        self.index.outcomes.first_seqno(self.served_from())
    }

    /// Returns the lowest seqno kept.
    pub fn first_seqno_kept(&self) -> Option<i64> {
        self.index.outcomes.first_seqno(0)
    }

    /// Returns the highest seqno recorded.
    pub fn last_seqno(&self) -> Option<i64> {
        self.index.outcomes.last_seqno()
    }

    /// Returns the counters since the log was opened.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the bytes of all segments, the write buffer included.
    pub fn bytes_kept(&self) -> u64 {
        self.index
            .segments
            .front()
            .map_or(0, |oldest| self.index.end() - oldest.start)
    }

    // ---- parts of entries ----

    /// Returns the length of the payload at `position`; `None` if the log does not hold it. Reads nothing.
    pub fn len_at(&self, position: u64) -> Option<u32> {
        self.index.place(position).map(|place| place.len)
    }

    /// Returns the start of the entry at `position`, with at most `head_bytes` of its payload; `None` if the log does
    /// not hold it.
    pub fn peek(&self, position: u64, head_bytes: u32) -> Result<Option<Peek>, LogError> {
        let Some(place) = self.index.place(position) else {
            return Ok(None);
        };
        let front = self.read_at(place, Peek::front(place, head_bytes))?;
        Peek::of(&*self.disk, place, front).map(Some)
    }

    /// Returns these bytes of the payload at `position`, as far as the payload goes; `None` if the log does not hold
    /// it. The bytes are not verified ([`Peek::rest_crc`] verifies all of them together).
    pub fn read_part(&self, position: u64, part: Range<u32>) -> Result<Option<Vec<u8>>, LogError> {
        let Some(place) = self.index.place(position) else {
            return Ok(None);
        };
        self.read_at(place, within(place, part)).map(Some)
    }

    /// Returns the error for an entry that was read in parts and has a wrong checksum; `None` if the log does not hold
    /// it.
    pub fn damage_at(&self, position: u64) -> Option<LogError> {
        (self.index.place(position)).map(|place| damage(&*self.disk, place))
    }

    // ---- jobs ----

    /// Makes a job that reads the entries with a seqno, from `seqno` on, until their payloads exceed `max_bytes`, but
    /// at least one. The job is empty if the log does not hold the seqno.
    ///
    /// # Errors
    /// If the file of the first entry cannot be opened.
    pub fn run_job_from_seqno(&self, seqno: i64, max_bytes: u64) -> Result<RunJob, LogError> {
        let outcomes = &self.index.outcomes;
        // The entries above have no seqno yet: of a node that is held still, they may be millions.
        match (outcomes.position_of(seqno), outcomes.last_position()) {
            (Some(first), Some(last)) => self.run_job(first..=last, max_bytes, true),
            _ => Ok(self.no_job()),
        }
    }

    /// Makes a job that reads these bytes of the payload at `position`, as far as the payload goes, and its first
    /// `head_bytes`; `None` if the log does not hold the entry.
    ///
    /// # Errors
    /// If the entry's file cannot be opened.
    pub fn part_job(
        &self,
        position: u64,
        head_bytes: u32,
        part: Range<u32>,
    ) -> Result<Option<PartJob>, LogError> {
        let Some(place) = self.index.place(position) else {
            return Ok(None);
        };
        let error = |e| read_error(&*self.disk, place, e);
        let front = self.piece(place, Peek::front(place, head_bytes));
        let front = front.map_err(error)?;
        let part = self.piece(place, within(place, part)).map_err(error)?;
        Ok(Some(PartJob::new(self.disk.clone(), place, front, part)))
    }

    /// As [`Log::run_job_from_seqno`], for these positions; `ordered`: skips entries without a seqno.
    fn run_job(
        &self,
        positions: RangeInclusive<u64>,
        max_bytes: u64,
        ordered: bool,
    ) -> Result<RunJob, LogError> {
        let (mut job, mut bytes) = (self.no_job(), 0);
        for position in positions {
            let Some(place) = self.index.place(position) else {
                break;
            };
            let outcome = self.outcome(position);
            if ordered && outcome.is_none_or(|outcome| outcome.seqno <= 0) {
                continue;
            }
            bytes += u64::from(place.len);
            if bytes > max_bytes && !job.is_empty() {
                break;
            }
            let open = job.last_file(place.segment);
            let source = match open.filter(|_| !self.is_buffered(place)) {
                Some(file) => Source::File(file),
                None => match self.source(place) {
                    Err(_) if !job.is_empty() => break,
                    source => source.map_err(|e| read_error(&*self.disk, place, e))?,
                },
            };
            job.add(position, outcome, place, source);
        }
        Ok(job)
    }

    /// Reads the payload of a record.
    fn read_place(&self, place: Place) -> Result<Vec<u8>, LogError> {
        let source = self.source(place);
        let source = source.map_err(|e| read_error(&*self.disk, place, e))?;
        let mut job = self.no_job();
        job.add(0, None, place, source);
        job.run_single()
    }

    /// Reads these bytes of a record.
    fn read_at(&self, place: Place, part: Range<u64>) -> Result<Vec<u8>, LogError> {
        let read = self.piece(place, part).and_then(Piece::read);
        read.map_err(|e| read_error(&*self.disk, place, e))
    }

    fn no_job(&self) -> RunJob {
        RunJob::new(self.disk.clone(), self.config.thresholds.ahead_bytes)
    }

    fn is_buffered(&self, place: Place) -> bool {
        place.segment == self.active_number() && self.active.has_buffered(place.offset)
    }

    fn source(&self, place: Place) -> io::Result<Source> {
        if !self.is_buffered(place) {
            return self.segment_file(place.segment).map(Source::File);
        }
        let payload = RECORD_HEADER_BYTES..RECORD_HEADER_BYTES + u64::from(place.len);
        self.buffered(place, payload).map(Source::Buffer)
    }

    fn piece(&self, place: Place, part: Range<u64>) -> io::Result<Piece> {
        if self.is_buffered(place) {
            return self.buffered(place, part).map(Piece::Here);
        }
        Ok(Piece::InFile {
            file: self.segment_file(place.segment)?,
            offset: place.offset + part.start,
            len: (part.end - part.start) as usize,
        })
    }

    fn buffered(&self, place: Place, part: Range<u64>) -> io::Result<Vec<u8>> {
        let bytes = place.offset + part.start..place.offset + part.end;
        self.active.buffered(bytes)
    }
}
