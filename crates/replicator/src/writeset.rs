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
    /// Not to be applied beside anything.
    pub const PA_UNSAFE: u32 = 0x008;
    /// First (or only) fragment.
    pub const TRX_START: u32 = 0x040;
    /// To be applied after all that its origin had seen.
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

/// The transaction of a submission; None: it is no write-set.
pub fn transaction_of(payload: &[u8]) -> Option<TrxId> {
    let is_write_set = payload.get(1) == Some(&KIND_WRITE_SET);
    let trx = payload.get(TRX_AT..CONN_AT).filter(|_| is_write_set)?;
    Some(TrxId::from_le_bytes(trx.try_into().ok()?))
}

/// Beyond this size the checksum takes so long that it is made outside of every lock.
const SUMMED_BYTES: usize = 1 << 20;

/// A write-set of this node, complete but for what only the order knows: `last_seen`, `epoch` and
/// `previous` are filled in, in place, at the moment it is sent (server-contract-traps.md#when-last_seen-is-sampled).
#[derive(Clone, Debug)]
pub struct WriteSetDraft {
    /// Only the header, if the rest was handed to the others already.
    bytes: Vec<u8>,
    parcel: Option<u64>,
    /// Of what follows the header; only of a large one.
    digest: Option<u32>,
    keys: usize,
    keys_bytes: usize,
    data_bytes: usize,
}

impl WriteSetDraft {
    /// Encodes a write-set. `data` are consecutive pieces of the server's own bytes. Meant to be
    /// called outside of every lock.
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
            parcel: None,
            digest,
            keys: keys.len(),
            keys_bytes,
            data_bytes,
        }
    }

    /// Size on the wire.
    pub fn len_bytes(&self) -> usize {
        KEYS_AT + self.keys_bytes + self.data_bytes
    }

    /// True if the order does not take it, nor any log.
    pub(crate) fn is_too_long(&self) -> bool {
        self.len_bytes() > PAYLOAD_MAX as usize
    }

    /// One that says of itself that it takes so many bytes.
    #[cfg(test)]
    pub(crate) fn claims(mut self, len_bytes: usize) -> Self {
        self.data_bytes = len_bytes - KEYS_AT - self.keys_bytes;
        self
    }

    /// Gives the write-set away as a parcel of this number, to be handed to the others before it is finished:
    /// its bytes, how many of them at the begin are not final, the CRC-32C of the rest.
    pub(crate) fn split(&mut self, parcel: u64) -> (Bytes, u32, u32) {
        let header = self.bytes[..KEYS_AT].to_vec();
        let whole = std::mem::replace(&mut self.bytes, header);
        let digest = (self.digest).unwrap_or_else(|| crc32c::crc32c(&whole[KEYS_AT..]));
        self.parcel = Some(parcel);
        (Bytes::from(whole), KEYS_AT as u32, digest)
    }

    /// The parcel that it was given away as.
    pub(crate) fn parcel(&self) -> Option<u64> {
        self.parcel
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

    /// (keys, bytes of keys, bytes of data, other bytes)
    pub(crate) fn sizes(&self) -> [u64; 4] {
        [
            self.keys as u64,
            self.keys_bytes as u64,
            self.data_bytes as u64,
            KEYS_AT as u64,
        ]
    }

    /// The rollback of the streaming transaction `trx`.
    pub(crate) fn rollback(trx: TrxId) -> Self {
        let flags = flags::ROLLBACK | flags::PA_UNSAFE;
        WriteSetDraft::new(flags, trx, ConnId::MAX, &KeySetBuilder::new(), &[])
    }

    /// The finished write-set, or of a parcel the bytes at its begin; copies nothing. `previous`: see [`WriteSet::previous`].
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
    /// Of a streaming transaction: its fragment before this one, which is to be applied before it;
    /// else -1.
    pub previous: Seqno,
    /// The server's bytes: a part of the payload, not a copy.
    pub data: Bytes,
    keys: Bytes,
}

impl WriteSet {
    /// Reads the payload of a submission whose version and kind were looked at already.
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

    /// Size of the payload.
    pub(crate) fn len_bytes(&self) -> usize {
        KEYS_AT + self.keys.len() + self.data.len()
    }

    /// Its keys.
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

    /// True if it is a part of a streaming transaction: of one that does not begin and commit at once.
    pub(crate) fn is_fragment(&self) -> bool {
        is_fragment(self.flags) && !self.is_isolation() && !self.is_rollback()
    }

    /// What it names itself, whatever its keys say: to be applied only after all up to this.
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

    /// Flags under which the server gets it to apply: it knows a middle fragment by having none.
    pub(crate) fn apply_flags(&self) -> u32 {
        self.flags & !flags::IMPLICIT_DEPS
    }

    /// Flags under which a failed write-set reaches the server: it only takes its place
    /// (server-contract-callbacks.md#apply).
    pub(crate) fn dummy_flags(&self) -> u32 {
        if self.is_isolation() {
            flags::TRX_START | flags::ROLLBACK
        } else {
            flags::TRX_START | flags::TRX_END | flags::ROLLBACK
        }
    }
}

/// True unless a write-set with these flags both begins and commits its transaction.
pub(crate) fn is_fragment(flags: u32) -> bool {
    let whole = flags::TRX_START | flags::TRX_END;
    flags & whole != whole
}
