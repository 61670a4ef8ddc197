//! The wire form of a write-set's keys.
//!
//! ```text
//! u8   version (1)
//! u32  count
//! u64  hash            x count, strictly ascending
//! u2   type            x count, four to a byte, the first in the lowest bits; unused bits zero
//! ```
//! Integers are little-endian. The form is canonical: one set of keys has one encoding.

use crate::KeyType;

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 5;
const HASH_BYTES: usize = 8;
const TYPES_PER_BYTE: usize = 4;

/// The keys of one write-set: a validated view of their encoded form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySet<'a> {
    /// Exactly the encoded form, valid.
    bytes: &'a [u8],
    len: usize,
}

/// The reason why bytes are not a key set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    /// The bytes have a version that this node does not know.
    #[error("key set has version {0}, this node knows version {VERSION}")]
    Version(u8),
    /// The bytes end before the last key.
    #[error("key set of {needed} bytes has only {present}")]
    Truncated {
        /// Bytes that the header demands, as far as it is there.
        needed: u64,
        /// Bytes that are there.
        present: usize,
    },
    /// A hash is not above the one before it: out of order, or twice.
    #[error("key {0} of the key set is out of order")]
    Order(usize),
    /// Bits behind the last type are set.
    #[error("key set has bits set in its padding")]
    Padding,
}

impl<'a> KeySet<'a> {
    /// Reads the key set at the start of `bytes`, and returns it with its number of bytes. Ignores the bytes after it.
    ///
    /// # Errors
    /// [`KeySetError`] if the bytes are not the canonical form of a key set. Allocates nothing.
    pub fn parse(bytes: &'a [u8]) -> Result<(KeySet<'a>, usize), KeySetError> {
        let truncated = |needed| KeySetError::Truncated {
            needed,
            present: bytes.len(),
        };
        let &[version, c0, c1, c2, c3, ..] = bytes else {
            return Err(match bytes.first() {
                Some(&version) if version != VERSION => KeySetError::Version(version),
                _ => truncated(HEADER_BYTES as u64),
            });
        };
        if version != VERSION {
            return Err(KeySetError::Version(version));
        }
        let count = u32::from_le_bytes([c0, c1, c2, c3]);
        let needed = HEADER_BYTES as u64
            + u64::from(count) * HASH_BYTES as u64
            + u64::from(count).div_ceil(TYPES_PER_BYTE as u64);
        if needed > bytes.len() as u64 {
            return Err(truncated(needed));
        }
        // Both fit a usize now: they are not above the length of a slice.
        let (len, consumed) = (count as usize, needed as usize);
        let keys = KeySet {
            bytes: &bytes[..consumed],
            len,
        };

        let mut previous = None;
        for (i, hash) in keys.hashes_from(0).enumerate() {
            if previous >= Some(hash) {
                return Err(KeySetError::Order(i));
            }
            previous = Some(hash);
        }
        let used_bits = len % TYPES_PER_BYTE * 2;
        if used_bits != 0 && bytes[consumed - 1] >> used_bits != 0 {
            return Err(KeySetError::Padding);
        }
        Ok((keys, consumed))
    }

    /// The empty key set, for example of a rollback fragment.
    pub fn empty() -> KeySet<'static> {
        KeySet {
            bytes: &[VERSION, 0, 0, 0, 0],
            len: 0,
        }
    }

    /// The key set for bytes that [`as_bytes`](Self::as_bytes) of a valid key set returned.
    pub(crate) fn from_valid(bytes: &'a [u8]) -> KeySet<'a> {
        let count = bytes[1..HEADER_BYTES]
            .try_into()
            .expect("a valid key set has a header");
        KeySet {
            bytes,
            len: u32::from_le_bytes(count) as usize,
        }
    }

    /// The encoded form.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The keys by ascending hash; no hash occurs twice.
    pub fn iter(&self) -> impl Iterator<Item = (u64, KeyType)> + use<'a> {
        let types = &self.bytes[HEADER_BYTES + self.len * HASH_BYTES..];
        self.hashes_from(0).enumerate().map(move |(i, hash)| {
            (
                hash,
                KeyType::from_low_bits(types[i / TYPES_PER_BYTE] >> (i % TYPES_PER_BYTE * 2)),
            )
        })
    }

    /// The hashes by ascending value, without the `first` lowest. To leave these out takes no time.
    pub(crate) fn hashes_from(&self, first: usize) -> impl Iterator<Item = u64> + use<'a> {
        let end = HEADER_BYTES + self.len * HASH_BYTES;
        let hashes = &self.bytes[HEADER_BYTES + first * HASH_BYTES..end];
        hashes
            .chunks_exact(HASH_BYTES)
            .map(|hash| u64::from_le_bytes(hash.try_into().expect("chunks of 8 bytes")))
    }
}

/// Number of bytes that `keys` keys take.
pub(crate) fn encoded_bytes(keys: usize) -> usize {
    HEADER_BYTES + keys * HASH_BYTES + keys.div_ceil(TYPES_PER_BYTE)
}

/// Appends the encoded form of `keys`, which ascend strictly by hash.
pub(crate) fn encode_sorted(keys: &[(u64, KeyType)], out: &mut Vec<u8>) {
    out.reserve(encoded_bytes(keys.len()));
    out.push(VERSION);
    let count = u32::try_from(keys.len()).expect("the keys of one transaction fit in memory");
    out.extend_from_slice(&count.to_le_bytes());
    for (hash, _) in keys {
        out.extend_from_slice(&hash.to_le_bytes());
    }
    for four in keys.chunks(TYPES_PER_BYTE) {
        out.push(
            four.iter()
                .rev()
                .fold(0, |byte, &(_, ty)| byte << 2 | ty as u8),
        );
    }
}
