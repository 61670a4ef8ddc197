//! The sequence of write-sets that have committed on this node, kept as a digest: enough to tell two nodes apart.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// A digest of a sequence of write-sets: equal on two nodes that committed the same in the same order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// A running hash over seqno and payload hash of each.
    pub hash: u64,
    /// Write-sets that committed.
    pub committed: u64,
    /// Write-sets that lost their certification.
    pub failed: u64,
    /// Write-sets with a seqno that is not above the highest one before.
    pub out_of_order: u64,
    /// The last seqno.
    pub last: i64,
}

/// The sequence on this node.
#[derive(Default)]
pub struct Sequence {
    digest: Mutex<Digest>,
}

impl Sequence {
    /// Adds a write-set, within its commit order. `payload`: the hash of the payload; `None` if the write-set failed
    /// certification.
    pub fn add(&self, seqno: i64, payload: Option<u64>) {
        let mut digest = self.digest.lock().unwrap_or_else(PoisonError::into_inner);
        let mut block = [0_u8; 25];
        block[..8].copy_from_slice(&digest.hash.to_le_bytes());
        block[8..16].copy_from_slice(&seqno.to_le_bytes());
        block[16..24].copy_from_slice(&payload.unwrap_or(0).to_le_bytes());
        block[24] = payload.is_some().into();
        digest.hash = xxh3_64(&block);
        match payload {
            Some(_) => digest.committed += 1,
            None => digest.failed += 1,
        }
        if seqno <= digest.last {
            digest.out_of_order += 1;
        }
        digest.last = digest.last.max(seqno);
    }

    /// Returns the digest of the sequence since the last [`Sequence::clear`].
    pub fn digest(&self) -> Digest {
        *self.digest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Clears the sequence.
    pub fn clear(&self) {
        *self.digest.lock().unwrap_or_else(PoisonError::into_inner) = Digest::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(entries: &[(i64, Option<u64>)]) -> Digest {
        let sequence = Sequence::default();
        for (seqno, payload) in entries {
            sequence.add(*seqno, *payload);
        }
        sequence.digest()
    }

    #[test]
    fn order_seqno_payload_and_verdict_all_count() {
        let all = [(1, Some(7)), (2, None), (3, Some(0))];
        let first = digest(&all);
        assert_eq!(first, digest(&all));
        assert_eq!((first.committed, first.failed, first.last), (2, 1, 3));
        for other in [
            [(1, Some(7)), (3, Some(0)), (2, None)],
            [(1, Some(8)), (2, None), (3, Some(0))],
            [(1, Some(7)), (2, None), (3, None)],
            [(1, Some(7)), (2, None), (4, Some(0))],
        ] {
            assert_ne!(first.hash, digest(&other).hash, "{other:?}");
        }
    }

    #[test]
    fn disorder_is_counted() {
        assert_eq!(digest(&[(2, None), (1, None), (3, None)]).out_of_order, 1);
        assert_eq!(digest(&[(2, None), (5, None)]).out_of_order, 0);
    }
}
