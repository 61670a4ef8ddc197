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
        // The checksum of two pieces is a function of the first piece's, xor the second piece's.
        let rest_crc = whole_crc ^ before(crc32c::crc32c(&head), rest_bytes);
        Ok(Peek {
            head,
            len,
            rest_crc,
        })
    }
}

/// Returns what a piece with this CRC adds to the CRC of the whole, if so many bytes follow.
fn before(crc: u32, bytes: usize) -> u32 {
    static ZEROS: [u8; 4096] = [0; 4096];
    match ZEROS.get(..bytes) {
        // The processor is through these zeros before `crc32c_combine` has made its matrices.
        Some(zeros) => crc32c::crc32c_append(crc, zeros) ^ crc32c::crc32c(zeros),
        None => crc32c::crc32c_combine(crc, 0, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_adds_the_same_to_any_rest() {
        for bytes in [0, 1, 7, 4095, 4096, 4097, 100_000] {
            let crc = crc32c::crc32c(b"head");
            let combined = crc32c::crc32c_combine(crc, 0, bytes);
            assert_eq!(before(crc, bytes), combined, "{bytes}");
        }
    }
}
