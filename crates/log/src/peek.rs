//! The start of a large entry, which is read a part at a time: a read of the whole would block everything else.

use std::ops::Range;

use crate::disk::Disk;
use crate::error::LogError;
use crate::format::{self, RECORD_HEADER_BYTES, RecordHeader};
use crate::index::Place;
use crate::job::damage;

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
        let rest_crc = whole_crc ^ format::crc_before(crc32c::crc32c(&head), rest_bytes);
        Ok(Peek {
            head,
            len,
            rest_crc,
        })
    }
}
