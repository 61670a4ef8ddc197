//! Reads a large entry a part at a time: a read of the whole would block everything else.

use std::ops::Range;

use crate::disk::Disk;
use crate::error::LogError;
use crate::format::{self, RECORD_HEADER_BYTES, RecordHeader};
use crate::index::Place;
use crate::job::{damage, within};
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

impl Peek {
    /// Returns the range of a record's bytes that holds its header and at most `head_bytes` of its payload.
    pub(crate) fn front(place: Place, head_bytes: u32) -> Range<u64> {
        0..RECORD_HEADER_BYTES + u64::from(place.len.min(head_bytes))
    }

    /// Reads the begin of an entry from these bytes of its record.
    pub(crate) fn of(disk: &dyn Disk, place: Place, mut front: Vec<u8>) -> Result<Peek, LogError> {
        let len = place.len;
        let head = front.split_off(RECORD_HEADER_BYTES as usize);
        let record = RecordHeader::decode(&front, place.start + place.offset);
        let Some(record) = record.filter(|record| record.body_len == len) else {
            return Err(damage(disk, place));
        };
        let whole_crc = format::unpadded_crc(record.body_crc, len.into());
        let rest_bytes = len as usize - head.len();
        // The checksum of two pieces is a function of the first piece's, xor the second piece's.
        let rest_crc = whole_crc ^ crc32c::crc32c_combine(crc32c::crc32c(&head), 0, rest_bytes);
        Ok(Peek {
            head,
            len,
            rest_crc,
        })
    }
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
}
