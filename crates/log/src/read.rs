//! Reading entries back.

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

/// The file read last, so that a run opens each segment once.
type Opened = Option<(u64, Box<dyn DiskFile>)>;

impl Log {
    /// The payload at `position`; `None` if the log does not hold it.
    pub fn read(&self, position: u64) -> Result<Option<Vec<u8>>, LogError> {
        match self.index.place(position) {
            Some(place) => self.read_place(place, &mut None).map(Some),
            None => Ok(None),
        }
    }

    /// The outcome of `position`, if recorded.
    pub fn outcome(&self, position: u64) -> Option<Outcome> {
        self.index.outcomes.get(position)
    }

    /// The position of the entry with `seqno`.
    pub fn position_of_seqno(&self, seqno: i64) -> Option<u64> {
        self.index.outcomes.position_of(seqno)
    }

    /// Entries from `position` on, until their payloads exceed `max_bytes`, but at least one if the log holds it.
    /// Entries beyond [`Log::served_from`] are given as well: what to serve to whom is the caller's decision.
    pub fn read_run(&self, position: u64, max_bytes: u64) -> Result<Vec<RunItem>, LogError> {
        let (mut run, mut bytes, mut opened) = (Vec::new(), 0, None);
        for position in position..=u64::MAX {
            let Some(place) = self.index.place(position) else {
                break;
            };
            bytes += u64::from(place.len);
            if bytes > max_bytes && !run.is_empty() {
                break;
            }
            let payload = self.read_place(place, &mut opened)?;
            run.push(RunItem {
                position,
                outcome: self.outcome(position),
                payload,
            });
        }
        Ok(run)
    }

    /// [`Log::read_run`] from the entry with `seqno` on; entries without a seqno between are included. Empty if
    /// the log does not hold the seqno.
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

    /// The newest control-state snapshot of a position of at most `position`, with its position.
    pub fn snapshot_at(&self, position: u64) -> Result<Option<(u64, Vec<u8>)>, LogError> {
        match self.index.snapshot(position) {
            Some((at, place)) => Ok(Some((at, self.read_place(place, &mut None)?))),
            None => Ok(None),
        }
    }

    /// Position of the oldest entry held; `None`: the log is empty.
    pub fn first_position(&self) -> Option<u64> {
        self.index.first_position()
    }

    /// Position of the newest entry held; `None`: the log is empty.
    pub fn last_position(&self) -> Option<u64> {
        self.index.last_position()
    }

    /// The position that the next entry must have; `None`: any (a log just created).
    pub fn next_position(&self) -> Option<u64> {
        self.index.next_position
    }

    fn read_place(&self, place: Place, opened: &mut Opened) -> Result<Vec<u8>, LogError> {
        let mut head = [0; RECORD_HEADER_BYTES as usize];
        let mut body = vec![0; padded(place.len.into()) as usize];
        let body_at = place.offset + RECORD_HEADER_BYTES;
        let name = segment_name(place.segment);
        let error = |e| LogError::io("read", self.disk.path(&name), place.offset, e);
        if place.segment != self.active_number() {
            if opened
                .as_ref()
                .is_none_or(|(number, _)| *number != place.segment)
            {
                *opened = Some((place.segment, self.disk.open(&name).map_err(error)?));
            }
        } else if place.offset >= self.buffer_at {
            // Records are written out whole: this one is in the buffer, header and all.
            let at = (body_at - self.buffer_at) as usize;
            let found = self.buffer.get(at..at + place.len as usize);
            return found
                .map(<[u8]>::to_vec)
                .ok_or_else(|| error(std::io::ErrorKind::UnexpectedEof.into()));
        }
        let file: &dyn DiskFile = match &*opened {
            Some((number, file)) if *number == place.segment => &**file,
            _ => &*self.active,
        };
        file.read_exact_at(&mut head, place.offset).map_err(error)?;
        file.read_exact_at(&mut body, body_at).map_err(error)?;
        let valid = RecordHeader::decode(&head, place.start + place.offset)
            .is_some_and(|h| h.body_len == place.len && h.body_crc == body_crc(&[&body]));
        if !valid {
            let reason = "a record read back is not what was written";
            return Err(LogError::corrupt(
                &self.disk.path(&name),
                place.offset,
                reason,
            ));
        }
        body.truncate(place.len as usize);
        Ok(body)
    }
}
