//! Digests by which invariants compare the control states of nodes.

use std::hash::{Hash, Hasher};

use bytes::Bytes;
use trireme_group::Position;
use xxhash_rust::xxh3::xxh3_64;

use crate::control::Control;

/// Digests of a control state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlDigest {
    /// The last position processed.
    pub position: Position,
    /// Digest of the small parts. Cheap, and not computed from the encoding, so that it also covers fields that the
    /// encoding lacks.
    pub brief: u64,
    /// Digest of the encoded state.
    pub whole: u64,
}

impl ControlDigest {
    /// Returns the digest of a state that [`crate::Replicator::control_snapshot`] returned, as a restart will read it.
    /// None: a restart cannot read it.
    pub fn of_snapshot(control: &Bytes) -> Option<ControlDigest> {
        let decoded = Control::decode(control.clone()).ok()?;
        Some(decoded.digest_with(control))
    }
}

impl Control {
    /// Returns the digests, which are equal for equal states. As costly as an encoding.
    pub(crate) fn digest(&self) -> ControlDigest {
        self.digest_with(&self.encode())
    }

    fn digest_with(&self, encoded: &[u8]) -> ControlDigest {
        ControlDigest {
            position: self.position,
            brief: self.brief_digest(),
            whole: xxh3_64(encoded),
        }
    }

    /// Returns a digest that is equal for equal states, and seldom equal for others. Of the certification index, the
    /// views and the runs of seqnos only the ends count, of the configuration the votes.
    pub(crate) fn brief_digest(&self) -> u64 {
        // The complete pattern makes a new field a compile error here: decide whether the field is small.
        let Control {
            history,
            position,
            certification,
            members,
            forks,
            runs,
            views,
            votes,
        } = self;
        let (states, failed) = (members.states(), members.failed());
        let mut hasher = Rolling(0);
        (history, position, states, forks, votes, failed).hash(&mut hasher);
        // The names and addresses change only with the numbers.
        let configuration = members.configuration();
        configuration.number.hash(&mut hasher);
        for member in &configuration.members {
            (member.weight, member.voter).hash(&mut hasher);
        }
        certification.hash_head(&mut hasher);
        let runs = &runs.first;
        (runs.len(), runs.front(), runs.back()).hash(&mut hasher);
        let view = |view: Option<&(i64, _)>| view.map(|(seqno, _)| *seqno);
        (views.len(), view(views.oldest()), view(views.last())).hash(&mut hasher);
        hasher.finish()
    }
}

/// A fast hash, good only to tell states apart.
struct Rolling(u64);

impl Hasher for Rolling {
    fn write(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((word, after)) = rest.split_first_chunk() {
            self.write_u64(u64::from_le_bytes(*word));
            rest = after;
        }
        for byte in rest {
            self.write_u8(*byte);
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0.rotate_left(29) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
