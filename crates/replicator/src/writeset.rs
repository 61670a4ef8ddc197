//! The wire form of a write-set (format: `docs/wire-replicator.md`).

use bytes::Bytes;
use trireme_certification::{KeySet, KeySetBuilder, Seqno};
use trireme_group::PAYLOAD_MAX;
use trireme_mutants::{Mutant, planted};

use crate::event::{ConnId, TrxId};
use crate::message::{KIND_WRITE_SET, MessageError, VERSION};
use crate::wire::is_seqno;

/// `WSREP_FLAG_*` bits.
pub mod flags {
    /// Last (or only) fragment: commits.
    pub const TRX_END: u32 = 0x001;
    /// Rolls back; with START it is a dummy that only takes its place in the order.
    pub const ROLLBACK: u32 = 0x002;
    /// Total-order isolation.
    pub const ISOLATION: u32 = 0x004;
    /// Must not be applied in parallel with other write-sets.
    pub const PA_UNSAFE: u32 = 0x008;
    /// First (or only) fragment.
    pub const TRX_START: u32 = 0x040;
    /// Must be applied after everything that its origin had seen.
    pub const IMPLICIT_DEPS: u32 = 0x200;
    /// All bits that the wsrep API defines.
    pub const MASK: u32 = 0x3ff;
}

pub(crate) const FLAGS_AT: usize = 2;
pub(crate) const LAST_SEEN_AT: usize = 6;
pub(crate) const EPOCH_AT: usize = 14;
pub(crate) const TRX_AT: usize = 22;
pub(crate) const CONN_AT: usize = 30;
pub(crate) const PREVIOUS_AT: usize = 38;
pub(crate) const KEYS_AT: usize = 46;

/// Returns the transaction of a submission; None: it is no write-set.
pub fn transaction_of(payload: &[u8]) -> Option<TrxId> {
    let is_write_set = payload.get(1) == Some(&KIND_WRITE_SET);
    let trx = payload.get(TRX_AT..CONN_AT).filter(|_| is_write_set)?;
    Some(TrxId::from_le_bytes(trx.try_into().ok()?))
}

/// Size above which the checksum takes so long that it is made outside of every lock.
const SUMMED_BYTES: usize = 1 << 20;

/// A write-set of this node, complete except for the fields that depend on the order. `last_seen`, `epoch` and
/// `previous` are filled in, in place, at the moment it is sent (server-contract-traps.md#when-last_seen-is-sampled).
#[derive(Clone, Debug)]
pub struct WriteSetDraft {
    /// Only the header, if the others have got the rest already.
    bytes: Vec<u8>,
    bulk: Option<u64>,
    /// Digest of the bytes behind the header; only of a large write-set.
    digest: Option<u32>,
    keys: usize,
    keys_bytes: usize,
    data_bytes: usize,
}

impl WriteSetDraft {
    /// Encodes a write-set. `data` are consecutive pieces of the server's own bytes. Call it outside of every lock.
    pub fn new(flags: u32, trx: TrxId, conn: ConnId, keys: &KeySetBuilder, data: &[&[u8]]) -> Self {
        let data_bytes = data.iter().map(|piece| piece.len()).sum();
        let mut bytes = Vec::with_capacity(KEYS_AT + keys.bytes() + data_bytes);
        bytes.extend_from_slice(&[VERSION, KIND_WRITE_SET]);
        bytes.extend_from_slice(&(flags & flags::MASK).to_le_bytes());
        bytes.extend_from_slice(&(-1i64).to_le_bytes());
        bytes.extend_from_slice(&0u64.to_le_bytes());
        bytes.extend_from_slice(&trx.to_le_bytes());
        bytes.extend_from_slice(&conn.to_le_bytes());
        bytes.extend_from_slice(&(-1i64).to_le_bytes());
        keys.encode(&mut bytes);
        let keys_bytes = bytes.len() - KEYS_AT;
        for piece in data {
            bytes.extend_from_slice(piece);
        }
        let digest = (bytes.len() > SUMMED_BYTES).then(|| crc32c::crc32c(&bytes[KEYS_AT..]));
        WriteSetDraft {
            bytes,
            bulk: None,
            digest,
            keys: keys.len(),
            keys_bytes,
            data_bytes,
        }
    }

    /// Returns the size on the wire.
    pub fn len_bytes(&self) -> usize {
        KEYS_AT + self.keys_bytes + self.data_bytes
    }

    /// Returns true if neither the order nor any log takes it, because of its size.
    pub(crate) fn is_too_long(&self) -> bool {
        self.len_bytes() > PAYLOAD_MAX as usize
    }

    /// Returns a draft that claims a size of so many bytes.
    #[cfg(test)]
    pub(crate) fn claims(mut self, len_bytes: usize) -> Self {
        self.data_bytes = len_bytes - KEYS_AT - self.keys_bytes;
        self
    }

    /// Gives the write-set away as a bulk payload of this number, to be handed to the others before it is finished.
    /// Returns its bytes, the number of bytes at the start that are not final, and the CRC-32C of the rest.
    pub(crate) fn split(&mut self, bulk: u64) -> (Bytes, u32, u32) {
        let header = self.bytes[..KEYS_AT].to_vec();
        let whole = std::mem::replace(&mut self.bytes, header);
        let digest = (self.digest).unwrap_or_else(|| crc32c::crc32c(&whole[KEYS_AT..]));
        self.bulk = Some(bulk);
        (Bytes::from(whole), KEYS_AT as u32, digest)
    }

    /// Returns its number as a bulk payload.
    pub(crate) fn bulk(&self) -> Option<u64> {
        self.bulk
    }

    pub(crate) fn flags(&self) -> u32 {
        u32::from_le_bytes(
            self.bytes[FLAGS_AT..LAST_SEEN_AT]
                .try_into()
                .expect("4 bytes of the header"),
        )
    }

    pub(crate) fn add_flags(&mut self, more: u32) {
        let flags = self.flags() | more;
        self.bytes[FLAGS_AT..LAST_SEEN_AT].copy_from_slice(&flags.to_le_bytes());
    }

    /// Returns (keys, bytes of keys, bytes of data, other bytes).
    pub(crate) fn sizes(&self) -> [u64; 4] {
        [
            self.keys as u64,
            self.keys_bytes as u64,
            self.data_bytes as u64,
            KEYS_AT as u64,
        ]
    }

    /// Returns the rollback of the streaming transaction `trx`.
    pub(crate) fn rollback(trx: TrxId) -> Self {
        let flags = flags::ROLLBACK | flags::PA_UNSAFE;
        WriteSetDraft::new(flags, trx, ConnId::MAX, &KeySetBuilder::new(), &[])
    }

    /// Returns the finished write-set, or the bytes at the start of a bulk payload; copies nothing. `previous`: see
    /// [`WriteSet::previous`].
    pub(crate) fn finish(mut self, last_seen: Seqno, epoch: u64, previous: Seqno) -> Bytes {
        self.bytes[PREVIOUS_AT..KEYS_AT].copy_from_slice(&previous.to_le_bytes());
        self.bytes[LAST_SEEN_AT..EPOCH_AT].copy_from_slice(&last_seen.to_le_bytes());
        self.bytes[EPOCH_AT..TRX_AT].copy_from_slice(&epoch.to_le_bytes());
        Bytes::from(self.bytes)
    }
}

/// A write-set that came in.
#[derive(Clone, Debug)]
pub(crate) struct WriteSet {
    pub flags: u32,
    pub last_seen: Seqno,
    pub epoch: u64,
    pub trx: TrxId,
    pub conn: ConnId,
    /// In a streaming transaction: the fragment before this one, which must be applied before it; otherwise -1.
    pub previous: Seqno,
    /// The server's bytes: a part of the payload, not a copy.
    pub data: Bytes,
    keys: Bytes,
}

impl WriteSet {
    /// Reads the payload of a submission. The caller has checked its version and kind.
    pub(crate) fn parse(payload: &Bytes) -> Result<Self, MessageError> {
        let header: &[u8; KEYS_AT] = payload.first_chunk().ok_or(MessageError::Truncated)?;
        let u64_at = |at: usize| {
            u64::from_le_bytes(
                header[at..at + 8]
                    .try_into()
                    .expect("8 bytes of the header"),
            )
        };
        for seqno in [LAST_SEEN_AT, PREVIOUS_AT].map(u64_at) {
            if !is_seqno(seqno as i64) {
                return Err(MessageError::Value("seqno", seqno));
            }
        }
        let (_, keys_bytes) = KeySet::parse(&payload[KEYS_AT..])?;
        Ok(WriteSet {
            flags: u32::from_le_bytes(header[FLAGS_AT..LAST_SEEN_AT].try_into().expect("4 bytes"))
                & flags::MASK,
            last_seen: u64_at(LAST_SEEN_AT) as i64,
            epoch: u64_at(EPOCH_AT),
            trx: u64_at(TRX_AT),
            conn: u64_at(CONN_AT),
            previous: u64_at(PREVIOUS_AT) as i64,
            keys: payload.slice(KEYS_AT..KEYS_AT + keys_bytes),
            data: payload.slice(KEYS_AT + keys_bytes..),
        })
    }

    /// Returns the size of the payload.
    pub(crate) fn len_bytes(&self) -> usize {
        KEYS_AT + self.keys.len() + self.data.len()
    }

    /// Returns its keys.
    pub(crate) fn keys(&self) -> KeySet<'_> {
        KeySet::parse(&self.keys)
            .expect("parse() has checked these bytes")
            .0
    }

    pub(crate) fn is_isolation(&self) -> bool {
        self.flags & flags::ISOLATION != 0
    }

    pub(crate) fn is_rollback(&self) -> bool {
        self.flags & flags::ROLLBACK != 0
    }

    /// Returns true if it is a part of a streaming transaction: one that does not begin and commit with the same
    /// write-set.
    pub(crate) fn is_fragment(&self) -> bool {
        is_fragment(self.flags) && !self.is_isolation() && !self.is_rollback()
    }

    /// Returns true if it is the last fragment of a streaming transaction: it commits.
    pub(crate) fn commits_stream(&self) -> bool {
        self.is_fragment() && self.flags & flags::TRX_END != 0
    }

    /// Returns the seqno up to which everything must be applied before it, by its own fields and not by its keys.
    pub(crate) fn applied_after(&self, seqno: Seqno) -> Seqno {
        let seen = match self.flags & flags::IMPLICIT_DEPS {
            0 => -1,
            _ => self.last_seen,
        };
        match planted(Mutant::FragmentOvertakes) {
            true => seen.min(seqno - 1),
            false => self.previous.max(seen).min(seqno - 1),
        }
    }

    /// Returns the flags with which the server applies it: the server recognises a middle fragment by the lack of
    /// flags.
    pub(crate) fn apply_flags(&self) -> u32 {
        self.flags & !flags::IMPLICIT_DEPS
    }

    /// Returns the flags with which the server gets a failed write-set, which only takes its place
    /// (server-contract-callbacks.md#apply).
    pub(crate) fn dummy_flags(&self) -> u32 {
        if self.is_isolation() {
            flags::TRX_START | flags::ROLLBACK
        } else {
            flags::TRX_START | flags::TRX_END | flags::ROLLBACK
        }
    }
}

/// Returns true unless a write-set with these flags both begins and commits its transaction.
pub(crate) fn is_fragment(flags: u32) -> bool {
    let whole = flags::TRX_START | flags::TRX_END;
    flags & whole != whole
}
