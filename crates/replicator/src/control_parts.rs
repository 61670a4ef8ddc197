//! A control state on its way to a joiner, as peer messages.

use bytes::Bytes;

use crate::peer_message::{PeerMessage, SnapshotChunk};

/// The parts of an encoded control state that are not sent yet. Yields them in their order, as messages.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlParts {
    /// The round of the joiner's request.
    round: u64,
    state: Bytes,
    sent_bytes: usize,
    part_bytes: usize,
}

impl ControlParts {
    /// Returns all parts of a state, for the joiner's request of this round.
    pub fn new(round: u64, state: Bytes, part_bytes: usize) -> ControlParts {
        ControlParts {
            round,
            state,
            sent_bytes: 0,
            part_bytes: part_bytes.max(1),
        }
    }
}

impl Iterator for ControlParts {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let left = self.state.slice(self.sent_bytes..);
        let part = left.slice(..left.len().min(self.part_bytes));
        if part.is_empty() {
            return None;
        }
        let chunk = SnapshotChunk {
            round: self.round,
            offset: self.sent_bytes as u64,
            total: self.state.len() as u64,
            part,
        };
        self.sent_bytes += chunk.part.len();
        Some(PeerMessage::SnapshotChunk(chunk).encode())
    }
}
