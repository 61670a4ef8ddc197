//! The bytes of segment headers and records, as docs/log-format.md specifies them.

use crate::config::Durability;

/// Bytes of a segment header.
pub(crate) const SEGMENT_HEADER_BYTES: u64 = 128;
/// Bytes of a record header.
pub(crate) const RECORD_HEADER_BYTES: u64 = 32;
const MAGIC: &[u8; 8] = b"TRIRMLOG";
/// The highest address at which a segment may start. No real log grows so far. A header with a higher address is
/// refused, because it could make the arithmetic of addresses overflow.
const MAX_START: u64 = 1 << 62;
/// The version that is written, and the newest version that can be read.
pub(crate) const FORMAT_VERSION: u32 = 1;
/// A reader skips unknown kinds from this one on.
pub(crate) const FIRST_SKIPPABLE_KIND: u8 = 128;

pub(crate) const KIND_ENTRY: u8 = 1;
pub(crate) const KIND_OUTCOME: u8 = 2;
pub(crate) const KIND_TRUNCATE: u8 = 3;
pub(crate) const KIND_SNAPSHOT: u8 = 4;

/// Returns the name of segment `number`.
pub(crate) fn segment_name(number: u64) -> String {
    format!("trireme-{number:012}.log")
}

/// Returns the name for bytes set aside from segment `number`, from `offset` on.
pub(crate) fn damaged_name(number: u64, offset: u64) -> String {
    format!("trireme-damaged-{number:012}-{offset}.log")
}

/// Returns the name of the file of the `number`-th payload that was staged since the log was opened.
pub(crate) fn staged_name(number: u64) -> String {
    format!("trireme-staged-{number}.log")
}

/// The number in the name of a log that is not published; payloads count from 1.
pub(crate) const STAGED_LOG: u64 = 0;

/// Returns true if `name` has the form of [`staged_name`].
pub(crate) fn is_staged_name(name: &str) -> bool {
    name.starts_with("trireme-staged-") && name.ends_with(".log")
}

/// Returns true if `name` has the form of [`damaged_name`].
pub(crate) fn is_damaged_name(name: &str) -> bool {
    name.starts_with("trireme-damaged-") && name.ends_with(".log")
}

/// Returns the number of the segment called `name`; `None` for every other file.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("trireme-")?.strip_suffix(".log")?;
    let plain = digits.len() == 12 && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// Returns `length` rounded up to a multiple of 8.
pub(crate) fn padded(length: u64) -> u64 {
    length.next_multiple_of(8)
}

// Read little-endian fields at fixed offsets; callers pass arrays or slices of sufficient length.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4]
        .iter()
        .rev()
        .fold(0, |n, b| n << 8 | u32::from(*b))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8]
        .iter()
        .rev()
        .fold(0, |n, b| n << 8 | u64::from(*b))
}

/// The header of a segment file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub identity: [u8; 16],
    pub number: u64,
    /// Segments below this number are remnants: they are no part of the log.
    pub base: u64,
    /// Address of the file's first byte.
    pub start: u64,
    /// Everything below this address was on stable storage.
    pub flushed: u64,
    /// Position of the first entry appended from here on; `None` if unknown.
    pub next_position: Option<u64>,
    pub durability: Durability,
}

/// The reason why bytes are no segment header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadHeader {
    /// The magic is the log's, but the version is newer.
    Newer(u32),
    Invalid(&'static str),
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES as usize] {
        let mut out = [0; SEGMENT_HEADER_BYTES as usize];
        out[0..8].copy_from_slice(MAGIC);
        out[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        out[12..16].copy_from_slice(&(SEGMENT_HEADER_BYTES as u32).to_le_bytes());
        out[16..32].copy_from_slice(&self.identity);
        out[32..40].copy_from_slice(&self.number.to_le_bytes());
        out[40..48].copy_from_slice(&self.base.to_le_bytes());
        out[48..56].copy_from_slice(&self.start.to_le_bytes());
        out[56..64].copy_from_slice(&self.flushed.to_le_bytes());
        out[64..72].copy_from_slice(&self.next_position.unwrap_or(0).to_le_bytes());
        out[72] = u8::from(self.next_position.is_some());
        out[73] = match self.durability {
            Durability::Memory => 0,
            Durability::Os => 1,
            Durability::Disk => 2,
        };
        let crc = crc32c::crc32c(&out[..124]);
        out[124..128].copy_from_slice(&crc.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8; SEGMENT_HEADER_BYTES as usize]) -> Result<Self, BadHeader> {
        if &bytes[0..8] != MAGIC {
            return Err(BadHeader::Invalid("no segment header"));
        }
        let version = u32_at(bytes, 8);
        if version > FORMAT_VERSION {
            return Err(BadHeader::Newer(version));
        }
        if crc32c::crc32c(&bytes[..124]) != u32_at(bytes, 124) {
            return Err(BadHeader::Invalid("the segment header's checksum is wrong"));
        }
        if u64_at(bytes, 48) > MAX_START {
            return Err(BadHeader::Invalid("the segment's address is out of range"));
        }
        if u64_at(bytes, 40) > u64_at(bytes, 32) {
            return Err(BadHeader::Invalid("the segment calls itself a remnant"));
        }
        let durability = match bytes[73] {
            0 => Durability::Memory,
            1 => Durability::Os,
            2 => Durability::Disk,
            _ => return Err(BadHeader::Invalid("unknown durability mode")),
        };
        let mut identity = [0; 16];
        identity.copy_from_slice(&bytes[16..32]);
        Ok(SegmentHeader {
            identity,
            number: u64_at(bytes, 32),
            base: u64_at(bytes, 40),
            start: u64_at(bytes, 48),
            flushed: u64_at(bytes, 56),
            next_position: (bytes[72] & 1 != 0).then(|| u64_at(bytes, 64)),
            durability,
        })
    }
}

/// The header of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub kind: u8,
    pub tag: u8,
    /// Bytes of the body without padding.
    pub body_len: u32,
    /// CRC-32C of the body with its padding.
    pub body_crc: u32,
    pub position: u64,
    /// Everything below this address was on stable storage when the record was written.
    pub flushed: u64,
}

impl RecordHeader {
    /// Returns the number of bytes of the whole record.
    pub(crate) fn record_bytes(&self) -> u64 {
        RECORD_HEADER_BYTES + padded(u64::from(self.body_len))
    }

    /// Returns the bytes of the header at `address`.
    pub(crate) fn encode(&self, address: u64) -> [u8; RECORD_HEADER_BYTES as usize] {
        let mut out = [0; RECORD_HEADER_BYTES as usize];
        out[4..8].copy_from_slice(&self.body_crc.to_le_bytes());
        out[8] = self.kind;
        out[9] = self.tag;
        out[12..16].copy_from_slice(&self.body_len.to_le_bytes());
        out[16..24].copy_from_slice(&self.position.to_le_bytes());
        out[24..32].copy_from_slice(&self.flushed.to_le_bytes());
        let crc = header_crc(&out, address);
        out[0..4].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads the header at `address`; `None` if its checksum or the zero field is wrong.
    pub(crate) fn decode(bytes: &[u8], address: u64) -> Option<Self> {
        let bytes: &[u8; RECORD_HEADER_BYTES as usize] = bytes.try_into().ok()?;
        // The cheap tests come first: a search for records after a damage calls this for every multiple of 8.
        if bytes[8] == 0
            || bytes[10..12] != [0, 0]
            || header_crc(bytes, address) != u32_at(bytes, 0)
        {
            return None;
        }
        Some(RecordHeader {
            kind: bytes[8],
            tag: bytes[9],
            body_len: u32_at(bytes, 12),
            body_crc: u32_at(bytes, 4),
            position: u64_at(bytes, 16),
            flushed: u64_at(bytes, 24),
        })
    }
}

fn header_crc(bytes: &[u8; RECORD_HEADER_BYTES as usize], address: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&address.to_le_bytes()), &bytes[4..])
}

/// Returns the CRC-32C of a body given in parts, with its padding.
pub(crate) fn body_crc(parts: &[&[u8]]) -> u32 {
    let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
    let crc = parts
        .iter()
        .fold(0, |crc, part| crc32c::crc32c_append(crc, part));
    crc32c::crc32c_append(crc, padding(len))
}

/// Returns the CRC-32C of a body of `len` bytes without its padding, from the CRC-32C with it ([`body_crc`]).
pub(crate) fn unpadded_crc(crc: u32, len: u64) -> u32 {
    /// CRC-32C's polynomial, lowest power last.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    // Undoes the step of a zero bit. That step shifts the register down, and adds the polynomial, whose top bit is set,
    // if a 1 was shifted out.
    let back = |register: u32| match register >> 31 {
        1 => (register ^ POLYNOMIAL) << 1 | 1,
        _ => register << 1,
    };
    !(0..8 * padding(len).len()).fold(!crc, |register, _| back(register))
}

/// Returns what a piece with this CRC-32C adds to that of the whole, if so many bytes follow: the checksum of two pieces is
/// a function of the first piece's, xor the second piece's.
pub(crate) fn crc_before(crc: u32, bytes: usize) -> u32 {
    static ZEROS: [u8; 4096] = [0; 4096];
    match ZEROS.get(..bytes) {
        // The processor is through these zeros before `crc32c_combine` has made its matrices.
        Some(zeros) => crc32c::crc32c_append(crc, zeros) ^ crc32c::crc32c(zeros),
        None => crc32c::crc32c_combine(crc, 0, bytes),
    }
}

/// Returns the zero bytes that follow a body of `len` bytes.
pub(crate) fn padding(len: u64) -> &'static [u8] {
    &[0; 8][..(padded(len) - len) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_adds_the_same_to_any_rest() {
        for bytes in [0, 1, 7, 4095, 4096, 4097, 100_000] {
            let crc = crc32c::crc32c(b"head");
            let combined = crc32c::crc32c_combine(crc, 0, bytes);
            assert_eq!(crc_before(crc, bytes), combined, "{bytes}");
        }
    }

    #[test]
    fn names_are_recognised_exactly() {
        assert_eq!(segment_name(42), "trireme-000000000042.log");
        assert_eq!(segment_number("trireme-000000000042.log"), Some(42));
        for other in [
            "trireme-42.log",
            "trireme-18446744073709551615.log",
            "trireme-state.log",
            "trireme-000000000042.log.1",
            "trireme-+00000000042.log",
        ] {
            assert_eq!(segment_number(other), None, "{other}");
        }
        assert!(is_damaged_name(&damaged_name(1, 2)));
        assert_eq!(segment_number(&damaged_name(1, 2)), None);
    }

    #[test]
    fn a_record_is_valid_at_its_own_address_only() {
        let header = RecordHeader {
            kind: KIND_ENTRY,
            tag: 0,
            body_len: 3,
            body_crc: 1,
            position: 7,
            flushed: 0,
        };
        let bytes = header.encode(128);
        assert_eq!(RecordHeader::decode(&bytes, 128), Some(header));
        assert_eq!(RecordHeader::decode(&bytes, 136), None);
    }

    #[test]
    fn the_segment_header_round_trips_and_newer_versions_are_told_apart() {
        let header = SegmentHeader {
            identity: [9; 16],
            number: 3,
            base: 2,
            start: 4096,
            flushed: 4000,
            next_position: Some(77),
            durability: Durability::Disk,
        };
        let mut bytes = header.encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header.clone()));
        bytes[8] = 2;
        assert_eq!(SegmentHeader::decode(&bytes), Err(BadHeader::Newer(2)));
        bytes[8] = 1;
        bytes[50] ^= 1;
        assert!(matches!(
            SegmentHeader::decode(&bytes),
            Err(BadHeader::Invalid(_))
        ));
        for (start, is_valid) in [(MAX_START, true), (MAX_START + 1, false), (u64::MAX, false)] {
            let bytes = SegmentHeader {
                start,
                ..header.clone()
            }
            .encode();
            assert_eq!(SegmentHeader::decode(&bytes).is_ok(), is_valid, "{start}");
        }
        let remnant = SegmentHeader {
            base: header.number + 1,
            ..header
        };
        assert!(SegmentHeader::decode(&remnant.encode()).is_err());
    }

    #[test]
    fn the_body_checksum_does_not_depend_on_the_parts() {
        assert_eq!(
            body_crc(&[b"hello world"]),
            body_crc(&[b"hello", b"", b" world"])
        );
        assert_eq!(body_crc(&[b"hello"]), crc32c::crc32c(b"hello\0\0\0"));
    }

    #[test]
    fn the_padding_can_be_taken_out_of_a_checksum() {
        for len in 0..20 {
            let body = &b"what a log was given"[..len];
            let crc = unpadded_crc(body_crc(&[body]), len as u64);
            assert_eq!(crc, crc32c::crc32c(body), "{len} bytes");
        }
    }
}
