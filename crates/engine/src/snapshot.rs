//! The bytes of a log checkpoint: the states of group and replicator, kept in the segments, from which a log is read
//! back (docs/log-format.md).

use bytes::{BufMut, Bytes, BytesMut};
use trireme_group::{Checkpoint, decode_checkpoint, encode_checkpoint};

/// The version in the checkpoint's first byte.
const SNAPSHOT_VERSION: u8 = 1;

/// Returns the bytes of a checkpoint (docs/log-format.md): the group's state and the replicator's.
pub(crate) fn encode_snapshot(checkpoint: &Checkpoint, control: &[u8]) -> Bytes {
    let checkpoint = encode_checkpoint(checkpoint);
    let mut out = BytesMut::with_capacity(5 + checkpoint.len() + control.len());
    out.put_u8(SNAPSHOT_VERSION);
    out.put_u32_le(checkpoint.len() as u32);
    out.extend_from_slice(&checkpoint);
    out.extend_from_slice(control);
    out.freeze()
}

pub(crate) fn decode_snapshot(mut bytes: Bytes) -> Option<(Checkpoint, Bytes)> {
    let (head, _) = bytes.split_first_chunk::<5>()?;
    let [SNAPSHOT_VERSION, length @ ..] = *head else {
        return None;
    };
    let length = usize::try_from(u32::from_le_bytes(length)).ok()?;
    let _head = bytes.split_to(5);
    if length > bytes.len() {
        return None;
    }
    let checkpoint = decode_checkpoint(bytes.split_to(length)).ok()?;
    Some((checkpoint, bytes))
}

#[cfg(test)]
mod tests {
    use trireme_group::Uuid;

    use super::*;

    #[test]
    fn a_snapshot_comes_back() {
        let checkpoint = Checkpoint {
            position: 77,
            history: Uuid([3; 16]),
            ..Checkpoint::default()
        };
        let bytes = encode_snapshot(&checkpoint, b"control");
        // The rest is pinned by the golden files of the group and the replicator.
        let inner = encode_checkpoint(&checkpoint);
        let golden = [
            &[1][..],
            &(inner.len() as u32).to_le_bytes(),
            &inner,
            b"control",
        ]
        .concat();
        assert_eq!(bytes, golden);
        let control = Bytes::from_static(b"control");
        assert_eq!(decode_snapshot(bytes.clone()), Some((checkpoint, control)));
        for length in 0..bytes.len() - 7 {
            assert_eq!(decode_snapshot(bytes.slice(..length)), None, "{length}");
        }
        let newer = [&[2], &bytes[1..]].concat();
        assert_eq!(decode_snapshot(newer.into()), None);
    }
}
