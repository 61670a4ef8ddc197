//! Reads entries back: single ones, and runs from a position or a seqno. Bytes from a file are verified by the record's
//! checksum.

use std::sync::Arc;

use crate::disk::DiskFile;
use crate::error::LogError;
use crate::format::{RECORD_HEADER_BYTES, RecordHeader, body_crc, padded, segment_name};
use crate::index::Place;
use crate::log::Log;
use crate::outcome::Outcome;

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

/// The read-ahead of a run in its present segment. Each segment is opened once, and read in pieces that hold many
/// records.
#[derive(Default)]
struct Ahead {
    /// Bytes that the run may still take; 0: a single record is read.
    wanted: u64,
    segment: u64,
    /// None: nothing was read yet.
    file: Option<Arc<dyn DiskFile>>,
    /// A piece of the file, and its offset there.
    piece: Vec<u8>,
    piece_at: u64,
}

impl Ahead {
    fn record(&self, place: Place, record_bytes: u64) -> Option<&[u8]> {
        let at = place.offset.checked_sub(self.piece_at)? as usize;
        let piece = self.piece.get(at..at + record_bytes as usize)?;
        (self.segment == place.segment).then_some(piece)
    }
}

impl Log {
    /// Reads the payload at `position`; `None` if the log does not hold it.
    pub fn read(&self, position: u64) -> Result<Option<Vec<u8>>, LogError> {
        match self.index.place(position) {
            Some(place) => self.read_place(place, &mut Ahead::default()).map(Some),
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
        let (mut run, mut bytes, mut ahead) = (Vec::new(), 0, Ahead::default());
        for position in position..=last {
            let Some(place) = self.index.place(position) else {
                break;
            };
            bytes += u64::from(place.len);
            if bytes > max_bytes && !run.is_empty() {
                break;
            }
            ahead.wanted = max_bytes.saturating_sub(bytes);
            let payload = match self.read_place(place, &mut ahead) {
                // The next run, which begins with this entry, will fail.
                Err(_) if !run.is_empty() => break,
                read => read?,
            };
            run.push(RunItem {
                position,
                outcome: self.outcome(position),
                payload,
            });
        }
        Ok(run)
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
            Some((at, place)) => Ok(Some((at, self.read_place(place, &mut Ahead::default())?))),
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

    fn read_place(&self, place: Place, ahead: &mut Ahead) -> Result<Vec<u8>, LogError> {
        let is_active = place.segment == self.active_number();
        let body_at = place.offset + RECORD_HEADER_BYTES;
        let name = segment_name(place.segment);
        let error = |e| LogError::of_read(self.disk.path(&name), place.offset, e);
        if is_active && place.offset >= self.buffer_at {
            // Records are written out whole: this one is in the buffer, with its header.
            let at = (body_at - self.buffer_at) as usize;
            let found = self.buffer.get(at..at + place.len as usize);
            return found
                .map(<[u8]>::to_vec)
                .ok_or_else(|| error(std::io::ErrorKind::UnexpectedEof.into()));
        }
        let file = match &ahead.file {
            Some(file) if ahead.segment == place.segment => file.clone(),
            _ => {
                let file = self.segment_file(place.segment).map_err(error)?;
                *ahead = Ahead {
                    wanted: ahead.wanted,
                    segment: place.segment,
                    file: Some(file.clone()),
                    ..Ahead::default()
                };
                file
            }
        };
        let record_bytes = RECORD_HEADER_BYTES + padded(place.len.into());
        if ahead.record(place, record_bytes).is_none() {
            self.read_ahead(place, record_bytes, &*file, ahead);
        }
        if let Some(record) = ahead.record(place, record_bytes) {
            let (head, body) = record.split_at(RECORD_HEADER_BYTES as usize);
            return self.payload(place, head, body.to_vec());
        }
        let mut head = [0; RECORD_HEADER_BYTES as usize];
        let mut body = vec![0; padded(place.len.into()) as usize];
        file.read_exact_at(&mut head, place.offset).map_err(error)?;
        file.read_exact_at(&mut body, body_at).map_err(error)?;
        self.payload(place, &head, body)
    }

    /// Reads a piece from this record on, if the run wants more than this record. Ignores errors: the reads of single
    /// records will report them exactly.
    fn read_ahead(&self, place: Place, record_bytes: u64, file: &dyn DiskFile, ahead: &mut Ahead) {
        ahead.piece.clear();
        let written = match place.segment == self.active_number() {
            true => self.buffer_at,
            false => self.index.segment_len(place.segment),
        };
        let most = self.config.thresholds.ahead_bytes;
        let wanted = record_bytes.saturating_add(ahead.wanted).min(most);
        let length = wanted.min(written.saturating_sub(place.offset));
        if length <= record_bytes {
            return;
        }
        ahead.piece.resize(length as usize, 0);
        ahead.piece_at = place.offset;
        if file.read_exact_at(&mut ahead.piece, place.offset).is_err() {
            ahead.piece.clear();
        }
    }

    /// Returns the payload of a record from its header and padded body, after verifying both.
    fn payload(&self, place: Place, head: &[u8], mut body: Vec<u8>) -> Result<Vec<u8>, LogError> {
        let valid = RecordHeader::decode(head, place.start + place.offset)
            .is_some_and(|h| h.body_len == place.len && h.body_crc == body_crc(&[&body]));
        if !valid {
            return Err(self.damage(place));
        }
        body.truncate(place.len as usize);
        Ok(body)
    }

    pub(crate) fn damage(&self, place: Place) -> LogError {
        let path = self.disk.path(&segment_name(place.segment));
        let reason = "a record read back is not what was written";
        LogError::corrupt(&path, place.offset, reason)
    }
}
