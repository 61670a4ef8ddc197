//! The index as bytes: for the head of a log segment and for joiners.
//!
//! ```text
//! u8   version (1)
//! i64  max_length
//! i64  position
//! i64  floor
//! i64  barrier         last view, PA-unsafe write-set or isolated action; not below the floor
//! then for each seqno from floor + 1 to position:
//!   u8   kind          0 no keys, 1 write-set, 2 total-order isolation
//!   if kind is not 0: [u8; 16] origin, u64 epoch, key set (see key_set.rs; not empty)
//! ```
//! Integers are little-endian. The records above the floor determine the index: they are written in the order of
//! seqnos, and [`Certification::decode`] rebuilds the index from them. All of this is a function of the log: nodes at
//! one position write equal bytes.

use xxhash_rust::xxh3::xxh3_64;

use crate::window::{Record, Source};
use crate::{Certification, KeySet, KeySetError, Seqno};

const VERSION: u8 = 1;
/// A bound that no cluster reaches by counting.
const SEQNO_END: Seqno = 1 << 62;
const EMPTY: u8 = 0;
const WRITE_SET: u8 = 1;
const ISOLATION: u8 = 2;

/// The reason why bytes are not an encoded certification index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes have a version that this node does not know.
    #[error("certification snapshot has version {0}, this node knows version {VERSION}")]
    Version(u8),
    /// The bytes end too early.
    #[error("certification snapshot ends too early")]
    Truncated,
    /// Bytes follow the last record.
    #[error("certification snapshot is followed by {0} more bytes")]
    Trailing(usize),
    /// The numbers in the header contradict each other.
    #[error(
        "certification snapshot is impossible: max_length {max_length}, position {position}, floor {floor}, barrier {barrier}"
    )]
    Header {
        /// `cert.max_length`
        max_length: Seqno,
        /// Last seqno accounted for.
        position: Seqno,
        /// See [`Certification::floor`].
        floor: Seqno,
        /// The last seqno that no later one may overtake.
        barrier: Seqno,
    },
    /// A record has an unknown kind, or a kind for write-sets with keys and no keys.
    #[error("certification snapshot has a bad record at seqno {0}")]
    Record(Seqno),
    /// The keys of a record are not a key set.
    #[error("certification snapshot, seqno {seqno}: {source}")]
    Keys {
        /// The seqno of the record.
        seqno: Seqno,
        /// The error in its keys.
        source: KeySetError,
    },
}

impl Certification {
    /// Appends the encoded index to `out`. Equal states give equal bytes. Takes time in proportion to the keys above
    /// the floor.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        for number in [self.max_length, self.position, self.floor, self.barrier] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for record in self.window.above(self.floor) {
            let keys = record.keys();
            if keys.is_empty() {
                out.push(EMPTY);
                continue;
            }
            out.push(if record.isolation {
                ISOLATION
            } else {
                WRITE_SET
            });
            out.extend_from_slice(&record.source.origin);
            out.extend_from_slice(&record.source.epoch.to_le_bytes());
            out.extend_from_slice(keys.as_bytes());
        }
    }

    /// Decodes an index from all of `bytes`. It behaves as the encoded one.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are not an encoded index. Never panics, and allocates at most in proportion to the
    /// bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Input(bytes);
        let version = input.u8()?;
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let [max_length, position, floor, barrier] =
            [input.i64()?, input.i64()?, input.i64()?, input.i64()?];
        let possible = max_length >= 1
            && floor >= -1
            && floor <= barrier
            && barrier <= position
            && position < SEQNO_END
            && position
                .checked_sub(floor)
                .is_some_and(|length| length <= max_length);
        if !possible {
            return Err(DecodeError::Header {
                max_length,
                position,
                floor,
                barrier,
            });
        }

        let mut certification = Certification::new(floor, max_length);
        for seqno in floor + 1..=position {
            let record = input.record(seqno)?;
            certification.position = seqno;
            certification.enter(record);
        }
        certification.barrier = barrier;
        match input.0.len() {
            0 => Ok(certification),
            more => Err(DecodeError::Trailing(more)),
        }
    }

    /// Returns a number that is equal for equal states, for checks of invariants: a hash of position, floor, barrier
    /// and all keys above the floor. Takes as long as [`encode`](Self::encode).
    pub fn digest(&self) -> u64 {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        xxh3_64(&bytes)
    }
}

/// The bytes that are not decoded yet.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(u8::from_le_bytes)
    }

    fn i64(&mut self) -> Result<i64, DecodeError> {
        self.array().map(i64::from_le_bytes)
    }

    fn record(&mut self, seqno: Seqno) -> Result<Record, DecodeError> {
        let isolation = match self.u8()? {
            EMPTY => return Ok(Record::empty()),
            WRITE_SET => false,
            ISOLATION => true,
            _ => return Err(DecodeError::Record(seqno)),
        };
        let source = Source {
            origin: self.array()?,
            epoch: self.array().map(u64::from_le_bytes)?,
        };
        let (keys, consumed) =
            KeySet::parse(self.0).map_err(|source| DecodeError::Keys { seqno, source })?;
        if keys.is_empty() {
            return Err(DecodeError::Record(seqno));
        }
        self.0 = &self.0[consumed..];
        Ok(Record::new(source, isolation, &keys))
    }
}
