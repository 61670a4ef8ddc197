//! Reads a large entry a part at a time: a read of the whole would block everything else.

use std::ops::Range;

use crate::error::LogError;
use crate::format::{self, RECORD_HEADER_BYTES, RecordHeader, segment_name};
use crate::index::Place;
use crate::log::Log;

/// The start of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    /// The first bytes of its payload; not verified.
    pub head: Vec<u8>,
    /// Bytes of the payload.
    pub len: u32,
    /// CRC-32C of the payload without `head`, if the payload is intact.
    pub rest_crc: u32,
}

impl Log {
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
        let len = place.len;
        let mut front = self.read_at(
            place,
            0..RECORD_HEADER_BYTES + u64::from(len.min(head_bytes)),
        )?;
        let head = front.split_off(RECORD_HEADER_BYTES as usize);
        let record = RecordHeader::decode(&front, place.start + place.offset);
        let Some(record) = record.filter(|record| record.body_len == len) else {
            return Err(self.damage(place));
        };
        let whole_crc = format::unpadded_crc(record.body_crc, len.into());
        let rest_bytes = len as usize - head.len();
        // The checksum of two pieces is a function of the first piece's, xor the second piece's.
        let rest_crc = whole_crc ^ crc32c::crc32c_combine(crc32c::crc32c(&head), 0, rest_bytes);
        Ok(Some(Peek {
            head,
            len,
            rest_crc,
        }))
    }

    /// Returns these bytes of the payload at `position`, as far as the payload goes; `None` if the log does not hold
    /// it. The bytes are not verified ([`Peek::rest_crc`] verifies all of them together).
    pub fn read_part(&self, position: u64, part: Range<u32>) -> Result<Option<Vec<u8>>, LogError> {
        let Some(place) = self.index.place(position) else {
            return Ok(None);
        };
        let [from, until] = [part.start, part.end].map(|at| u64::from(at.min(place.len)));
        let in_record = RECORD_HEADER_BYTES + from..RECORD_HEADER_BYTES + until.max(from);
        self.read_at(place, in_record).map(Some)
    }

    /// Returns the error for an entry that was read in parts and has a wrong checksum; `None` if the log does not hold
    /// it.
    pub fn damage_at(&self, position: u64) -> Option<LogError> {
        self.index.place(position).map(|place| self.damage(place))
    }

    /// Reads these bytes of a record.
    fn read_at(&self, place: Place, part: Range<u64>) -> Result<Vec<u8>, LogError> {
        let error = |e| {
            LogError::of_read(
                self.disk.path(&segment_name(place.segment)),
                place.offset,
                e,
            )
        };
        let bytes = (part.end - part.start) as usize;
        if place.segment == self.active_number() && place.offset >= self.buffer_at {
            let at = (place.offset - self.buffer_at + part.start) as usize;
            let found = self.buffer.get(at..at + bytes).map(<[u8]>::to_vec);
            return found.ok_or_else(|| error(std::io::ErrorKind::UnexpectedEof.into()));
        }
        let mut found = vec![0; bytes];
        let file = self.segment_file(place.segment).map_err(error)?;
        let read = file.read_exact_at(&mut found, place.offset + part.start);
        read.map(|()| found).map_err(error)
    }
}
