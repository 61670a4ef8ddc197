//! The pull of the control state by a joiner, which asks members one after the other. The state that has come waits
//! until the joiner's own log reaches it.

use bytes::Bytes;
use trireme_group::{Incarnation, Position};
use trireme_mutants::{Mutant, planted};

use crate::control::Control;
use crate::peer_message::SnapshotChunk;

/// Above the size of any control state.
const MAX_BYTES: u64 = 1 << 32;
/// Time after which a member that does not answer is given up.
const TIMEOUT_MS: u64 = 1000;
/// Time after which a member that refused may be asked again.
const RETRY_MS: u64 = 50;

/// A control state that is being pulled.
#[derive(Debug, Default)]
pub(crate) struct ControlPull {
    /// Number of the attempt.
    round: u64,
    from: Option<Incarnation>,
    deadline_ms: u64,
    /// Size of the whole, as told by the first part.
    total: u64,
    bytes: Vec<u8>,
    /// The state that has come, with its sender.
    came: Option<Box<(Incarnation, Control)>>,
}

impl ControlPull {
    /// Returns the time at which a member is asked; None: a state has come.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.came.is_none().then_some(self.deadline_ms)
    }

    /// Returns the number of bytes that have come.
    #[cfg(test)]
    pub(crate) fn received_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of the attempt.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn round(&self) -> u64 {
        self.round
    }

    /// Asks the next of these members, if that is due.
    pub(super) fn ask(&mut self, now_ms: u64, peers: &[Incarnation]) -> Option<(Incarnation, u64)> {
        if self.deadline_ms().is_none_or(|due_ms| now_ms < due_ms) {
            return None;
        }
        let deadline_ms = now_ms + TIMEOUT_MS;
        if peers.is_empty() {
            self.deadline_ms = deadline_ms;
            return None;
        }
        let peer = peers[self.round as usize % peers.len()];
        *self = ControlPull {
            round: self.round + 1,
            from: Some(peer),
            deadline_ms,
            ..ControlPull::default()
        };
        Some((peer, self.round))
    }

    pub(super) fn refused(&mut self, from: Incarnation, round: u64, now_ms: u64) {
        if self.round == round && self.from == Some(from) {
            self.deadline_ms = now_ms + RETRY_MS;
        }
    }

    /// Takes in a part; returns the whole with the last one.
    pub(super) fn take(
        &mut self,
        from: Incarnation,
        chunk: &SnapshotChunk,
        now_ms: u64,
    ) -> Option<Bytes> {
        let expected = self.round == chunk.round && self.from == Some(from);
        if self.bytes.is_empty() {
            self.total = chunk.total.min(MAX_BYTES);
        }
        let (received, len) = (self.bytes.len() as u64, chunk.part.len() as u64);
        let follows = chunk.offset == received && chunk.total == self.total;
        // An empty part would only extend the deadline.
        if !expected || !follows || len == 0 || len > chunk.total - received {
            return None;
        }
        self.bytes.extend_from_slice(&chunk.part);
        self.deadline_ms = now_ms + TIMEOUT_MS;
        let is_whole = self.bytes.len() as u64 >= chunk.total;
        is_whole.then(|| Bytes::from(std::mem::take(&mut self.bytes)))
    }

    /// Keeps a state that has come, until [`Self::take_reached`].
    pub(super) fn keep(&mut self, from: Incarnation, control: Control) {
        self.came = Some(Box::new((from, control)));
    }

    /// Takes out the state that has come, if the log up to this position reaches it, with its sender.
    pub(super) fn take_reached(&mut self, position: Position) -> Option<(Incarnation, Control)> {
        let is_reached = |(_, control): &(Incarnation, Control)| {
            control.position <= position || planted(Mutant::StateAheadOfLog)
        };
        let came = self.came.take_if(|came| is_reached(came));
        came.map(|came| *came)
    }
}
