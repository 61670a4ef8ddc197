//! Reads that need no log: a job runs on any thread while the owner writes on. It holds open files, and copies of the bytes that
//! are still in the write buffer. The owner decides whether the result still counts after it has truncated the log or begun it
//! anew meanwhile.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::error::LogError;
use crate::format::{RECORD_HEADER_BYTES, RecordHeader, body_crc, padded, segment_name};
use crate::index::Place;
use crate::log::Log;
use crate::outcome::Outcome;
use crate::part::Peek;
use crate::read::RunItem;

/// Bytes of a record.
pub(crate) enum Piece {
    /// Copied from the write buffer.
    Here(Vec<u8>),
    /// In a file, from this offset on.
    InFile {
        file: Arc<dyn DiskFile>,
        offset: u64,
        len: usize,
    },
}

impl Piece {
    pub(crate) fn read(self) -> io::Result<Vec<u8>> {
        match self {
            Piece::Here(bytes) => Ok(bytes),
            Piece::InFile { file, offset, len } => {
                let mut bytes = vec![0; len];
                file.read_exact_at(&mut bytes, offset)?;
                Ok(bytes)
            }
        }
    }
}

/// Where the bytes of a whole record are.
enum Source {
    /// Its payload, copied from the write buffer.
    Buffer(Vec<u8>),
    File(Arc<dyn DiskFile>),
}

/// An entry that is to be read.
struct Wanted {
    position: u64,
    outcome: Option<Outcome>,
    place: Place,
    source: Source,
}

/// A piece of a segment that holds many records.
#[derive(Default)]
struct Ahead {
    segment: u64,
    offset: u64,
    bytes: Vec<u8>,
}

impl Ahead {
    fn record(&self, place: Place, record_bytes: u64) -> Option<&[u8]> {
        let at = place.offset.checked_sub(self.offset)? as usize;
        let record = self.bytes.get(at..at + record_bytes as usize)?;
        (self.segment == place.segment).then_some(record)
    }
}

/// Reads entries, in order of position.
pub struct RunJob {
    disk: Arc<dyn Disk>,
    /// At most this many bytes of a file are read at once, if more than one record is wanted.
    ahead_bytes: u64,
    wanted: Vec<Wanted>,
}

impl RunJob {
    /// Reads the entries. The run ends before an entry that cannot be read.
    ///
    /// # Errors
    /// If the first entry cannot be read.
    pub fn run(mut self) -> Result<Vec<RunItem>, LogError> {
        let mut run = Vec::with_capacity(self.wanted.len());
        let mut ahead = Ahead::default();
        for nth in 0..self.wanted.len() {
            let payload = match self.read(nth, &mut ahead) {
                // The run that begins with it will fail.
                Err(_) if !run.is_empty() => break,
                read => read?,
            };
            let Wanted {
                position, outcome, ..
            } = self.wanted[nth];
            run.push(RunItem {
                position,
                outcome,
                payload,
            });
        }
        Ok(run)
    }

    fn read(&mut self, nth: usize, ahead: &mut Ahead) -> Result<Vec<u8>, LogError> {
        let Wanted { place, source, .. } = &mut self.wanted[nth];
        let (place, file) = match source {
            Source::Buffer(payload) => return Ok(std::mem::take(payload)),
            Source::File(file) => (*place, file.clone()),
        };
        let record_bytes = RECORD_HEADER_BYTES + padded(place.len.into());
        if ahead.record(place, record_bytes).is_none() {
            self.read_ahead(nth, record_bytes, &*file, ahead);
        }
        if let Some(record) = ahead.record(place, record_bytes) {
            let (head, body) = record.split_at(RECORD_HEADER_BYTES as usize);
            return payload(&*self.disk, place, head, body.to_vec());
        }
        let error = |e| read_error(&*self.disk, place, e);
        let mut head = [0; RECORD_HEADER_BYTES as usize];
        let mut body = vec![0; padded(place.len.into()) as usize];
        let body_at = place.offset + RECORD_HEADER_BYTES;
        file.read_exact_at(&mut head, place.offset).map_err(error)?;
        file.read_exact_at(&mut body, body_at).map_err(error)?;
        payload(&*self.disk, place, &head, body)
    }

    /// Reads a piece from this record on, if the job wants more than this record of the file. Ignores errors: the reads of single
    /// records will report them exactly.
    fn read_ahead(&self, nth: usize, record_bytes: u64, file: &dyn DiskFile, ahead: &mut Ahead) {
        ahead.bytes.clear();
        let place = self.wanted[nth].place;
        let in_file = |wanted: &&Wanted| {
            wanted.place.segment == place.segment && matches!(wanted.source, Source::File(_))
        };
        let last = self.wanted[nth..].iter().take_while(in_file).last();
        let end = last.map_or(0, |last| {
            last.place.offset + RECORD_HEADER_BYTES + padded(last.place.len.into())
        });
        let length = end.saturating_sub(place.offset).min(self.ahead_bytes);
        if length <= record_bytes {
            return;
        }
        ahead.bytes.resize(length as usize, 0);
        (ahead.segment, ahead.offset) = (place.segment, place.offset);
        if file.read_exact_at(&mut ahead.bytes, place.offset).is_err() {
            ahead.bytes.clear();
        }
    }
}

/// Reads a part of an entry, and the begin of the entry.
pub struct PartJob {
    disk: Arc<dyn Disk>,
    place: Place,
    front: Piece,
    part: Piece,
}

impl PartJob {
    /// Reads both. The bytes are not verified ([`Peek::rest_crc`] verifies all parts together).
    pub fn run(self) -> Result<(Peek, Vec<u8>), LogError> {
        let error = |e| read_error(&*self.disk, self.place, e);
        let peek = Peek::of(&*self.disk, self.place, self.front.read().map_err(error)?)?;
        Ok((peek, self.part.read().map_err(error)?))
    }
}

impl Log {
    /// Makes a job that reads the entries with a seqno, from `seqno` on, until their payloads exceed `max_bytes`, but at least
    /// one. The job is empty if the log does not hold the seqno.
    ///
    /// # Errors
    /// If the file of the first entry cannot be opened.
    pub fn run_job_from_seqno(&self, seqno: i64, max_bytes: u64) -> Result<RunJob, LogError> {
        match self.position_of_seqno(seqno) {
            Some(position) => self.run_job(position..=u64::MAX, max_bytes, true),
            None => Ok(self.no_job()),
        }
    }

    /// Makes a job that reads these bytes of the payload at `position`, as far as the payload goes, and its first `head_bytes`;
    /// `None` if the log does not hold the entry.
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
        Ok(Some(PartJob {
            disk: self.disk.clone(),
            place,
            front: self
                .piece(place, Peek::front(place, head_bytes))
                .map_err(error)?,
            part: self.piece(place, within(place, part)).map_err(error)?,
        }))
    }

    /// As [`Log::run_job_from_seqno`], for these positions; `ordered`: skips entries without a seqno.
    pub(crate) fn run_job(
        &self,
        positions: std::ops::RangeInclusive<u64>,
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
            if bytes > max_bytes && !job.wanted.is_empty() {
                break;
            }
            let source = match job.wanted.last() {
                Some(Wanted {
                    place: last,
                    source: Source::File(file),
                    ..
                }) if last.segment == place.segment && !self.is_buffered(place) => {
                    Source::File(file.clone())
                }
                _ => match self.source(place) {
                    Err(_) if !job.wanted.is_empty() => break,
                    source => source.map_err(|e| read_error(&*self.disk, place, e))?,
                },
            };
            job.wanted.push(Wanted {
                position,
                outcome,
                place,
                source,
            });
        }
        Ok(job)
    }

    /// Reads the payload of a record.
    pub(crate) fn read_place(&self, place: Place) -> Result<Vec<u8>, LogError> {
        let source = self.source(place);
        let mut job = self.no_job();
        job.wanted.push(Wanted {
            position: 0,
            outcome: None,
            place,
            source: source.map_err(|e| read_error(&*self.disk, place, e))?,
        });
        job.read(0, &mut Ahead::default())
    }

    /// Reads these bytes of a record.
    pub(crate) fn read_at(&self, place: Place, part: Range<u64>) -> Result<Vec<u8>, LogError> {
        let read = self.piece(place, part).and_then(Piece::read);
        read.map_err(|e| read_error(&*self.disk, place, e))
    }

    fn no_job(&self) -> RunJob {
        RunJob {
            disk: self.disk.clone(),
            ahead_bytes: self.config.thresholds.ahead_bytes,
            wanted: Vec::new(),
        }
    }

    /// Records are written out whole: a record is in the buffer with its header, or not at all.
    fn is_buffered(&self, place: Place) -> bool {
        place.segment == self.active_number() && place.offset >= self.buffer_at
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
        let record_at = place.offset - self.buffer_at;
        let [from, until] = [part.start, part.end].map(|at| (record_at + at) as usize);
        let found = self.buffer.get(from..until).map(<[u8]>::to_vec);
        found.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// Returns the range of these payload bytes within their record, as far as the payload goes.
pub(crate) fn within(place: Place, part: Range<u32>) -> Range<u64> {
    let [from, until] = [part.start, part.end].map(|at| u64::from(at.min(place.len)));
    RECORD_HEADER_BYTES + from..RECORD_HEADER_BYTES + until.max(from)
}

/// Returns the error of a record with a wrong checksum.
pub(crate) fn damage(disk: &dyn Disk, place: Place) -> LogError {
    let path = disk.path(&segment_name(place.segment));
    let reason = "a record read back is not what was written";
    LogError::corrupt(&path, place.offset, reason)
}

fn read_error(disk: &dyn Disk, place: Place, error: io::Error) -> LogError {
    LogError::of_read(disk.path(&segment_name(place.segment)), place.offset, error)
}

/// Returns the payload of a record from its header and padded body, after verifying both.
fn payload(
    disk: &dyn Disk,
    place: Place,
    head: &[u8],
    mut body: Vec<u8>,
) -> Result<Vec<u8>, LogError> {
    let valid = RecordHeader::decode(head, place.start + place.offset)
        .is_some_and(|h| h.body_len == place.len && h.body_crc == body_crc(&[&body]));
    if !valid {
        return Err(damage(disk, place));
    }
    body.truncate(place.len as usize);
    Ok(body)
}
