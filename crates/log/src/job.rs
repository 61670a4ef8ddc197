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
use crate::outcome::Outcome;
use crate::peek::Peek;

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
pub(crate) enum Source {
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

/// One entry of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunItem {
    /// Its position.
    pub position: u64,
    /// Its outcome, if it is known already.
    pub outcome: Option<Outcome>,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// Reads entries, in order of position.
pub struct RunJob {
    disk: Arc<dyn Disk>,
    /// At most this many bytes of a file are read at once, if more than one record is wanted.
    ahead_bytes: u64,
    wanted: Vec<Wanted>,
}

impl RunJob {
    /// Returns a job without entries.
    pub(crate) fn new(disk: Arc<dyn Disk>, ahead_bytes: u64) -> RunJob {
        RunJob {
            disk,
            ahead_bytes,
            wanted: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Adds an entry, in order of position.
    pub(crate) fn add(
        &mut self,
        position: u64,
        outcome: Option<Outcome>,
        place: Place,
        source: Source,
    ) {
        self.wanted.push(Wanted {
            position,
            outcome,
            place,
            source,
        });
    }

    /// Returns the last entry's file, if that entry is in this segment.
    pub(crate) fn last_file(&self, segment: u64) -> Option<Arc<dyn DiskFile>> {
        match self.wanted.last() {
            Some(Wanted {
                place,
                source: Source::File(file),
                ..
            }) if place.segment == segment => Some(file.clone()),
            _ => None,
        }
    }

    /// Reads the payload of the only record.
    pub(crate) fn run_single(mut self) -> Result<Vec<u8>, LogError> {
        self.read(0, &mut Ahead::default())
    }

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
    pub(crate) fn new(disk: Arc<dyn Disk>, place: Place, front: Piece, part: Piece) -> PartJob {
        PartJob {
            disk,
            place,
            front,
            part,
        }
    }

    /// Reads both. The bytes are not verified ([`Peek::rest_crc`] verifies all parts together).
    pub fn run(self) -> Result<(Peek, Vec<u8>), LogError> {
        let error = |e| read_error(&*self.disk, self.place, e);
        let peek = Peek::of(&*self.disk, self.place, self.front.read().map_err(error)?)?;
        Ok((peek, self.part.read().map_err(error)?))
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

pub(crate) fn read_error(disk: &dyn Disk, place: Place, error: io::Error) -> LogError {
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
