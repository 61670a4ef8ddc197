//! A long entry that is pulled in parts: neither its donor nor other traffic of the connection waits for the whole.

use bytes::BytesMut;
use trireme_group::{Delivery, PAYLOAD_MAX};

use crate::history::{Recorded, RecordedPart};

/// The parts of an entry that have come.
#[derive(Debug)]
pub(crate) struct Partial {
    record: Recorded,
    len: u32,
    digest: u32,
    bytes: BytesMut,
    /// CRC-32C of the bytes that have come.
    crc: u32,
}

impl Partial {
    /// Returns an empty collection of the entry that this is a part of.
    pub(crate) fn new(part: &RecordedPart) -> Partial {
        Partial {
            record: part.record.clone(),
            len: part.len,
            digest: part.digest,
            bytes: BytesMut::new(),
            crc: 0,
        }
    }

    /// Returns the number of bytes that have come.
    pub(crate) fn received(&self) -> u32 {
        self.bytes.len() as u32 // at most `len`
    }

    /// Takes in the next part. Returns false if it is not the next one, or of another entry.
    pub(crate) fn take(&mut self, part: &RecordedPart) -> bool {
        let is_same = (part.len, part.digest) == (self.len, self.digest);
        let is_next = part.offset == self.received() && !part.bytes.is_empty();
        let room = (self.len.min(PAYLOAD_MAX) - self.received()) as usize;
        if part.record != self.record || !is_same || !is_next || part.bytes.len() > room {
            return false;
        }
        self.crc = crc32c::crc32c_append(self.crc, &part.bytes);
        self.bytes.extend_from_slice(&part.bytes);
        true
    }

    /// Returns true if all bytes have come.
    pub(crate) fn is_whole(&self) -> bool {
        self.received() == self.len
    }

    /// Returns the entry; None if its checksum is wrong.
    pub(crate) fn into_record(mut self) -> Option<Recorded> {
        if !self.is_whole() || self.crc != self.digest {
            return None;
        }
        let Delivery::Submission { payload, .. } = &mut self.record.delivery else {
            return None;
        };
        *payload = self.bytes.freeze();
        Some(self.record)
    }
}
