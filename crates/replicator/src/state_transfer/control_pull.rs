//! The pull of the control state by a joiner, which asks members one after the other. The state that has come waits
//! until the joiner's own log reaches it.

use bytes::Bytes;
use trireme_group::{Incarnation, Position};
use trireme_mutants::{Mutant, planted};

use super::patience::Patience;
use crate::control::Control;
use crate::peer_message::SnapshotChunk;

/// Above the size of any control state.
const MAX_BYTES: u64 = 1 << 32;
/// Time after which a member that refused may be asked again.
const RETRY_MS: u64 = 50;

/// A control state that is being pulled.
#[derive(Debug, Default)]
pub(crate) struct ControlPull {
    /// Number of the attempt.
    round: u64,
    from: Option<Incarnation>,
    deadline_ms: u64,
    /// The time until the next part must have come. It grows while parts come too late.
    patience: Patience,
    /// True if a part came since the last attempt began, of this or of an earlier attempt: the member lives, and the
    /// link is slow.
    is_slow: bool,
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
        let mut patience = self.patience;
        if self.is_slow {
            patience.grow();
        }
        let deadline_ms = now_ms + patience.ms();
        if peers.is_empty() {
            self.deadline_ms = deadline_ms;
            return None;
        }
        let peer = peers[self.round as usize % peers.len()];
        *self = ControlPull {
            round: self.round + 1,
            from: Some(peer),
            deadline_ms,
            patience,
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
        self.is_slow |= chunk.round <= self.round;
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
        self.deadline_ms = now_ms + self.patience.ms();
        if self.bytes.len() as u64 >= chunk.total {
            self.is_slow = false;
            return Some(Bytes::from(std::mem::take(&mut self.bytes)));
        }
        None
    }

    /// Keeps a state that has come, until [`Self::take_reached`].
    pub(super) fn keep(&mut self, from: Incarnation, control: Control) {
        self.came = Some(Box::new((from, control)));
    }

    /// Returns the state that has come, and waits for the log.
    pub(super) fn kept(&self) -> Option<&Control> {
        self.came.as_deref().map(|(_, control)| control)
    }

    /// Drops the state that has come: the next member is asked.
    pub(super) fn drop_kept(&mut self) {
        self.came = None;
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

#[cfg(test)]
mod tests {
    use trireme_group::Uuid;

    use super::*;

    fn part(round: u64, offset: u64) -> SnapshotChunk {
        SnapshotChunk {
            round,
            offset,
            total: 9,
            part: Bytes::from_static(b"part"),
        }
    }

    #[test]
    fn parts_that_come_too_late_are_waited_for_longer() {
        let peers = [1, 2].map(|number| Incarnation(Uuid([number; 16])));
        let mut pull = ControlPull::default();
        let asks = |pull: &mut ControlPull, round: u64, waits_ms: u64| {
            let now_ms = pull.deadline_ms;
            let peer = peers[(round as usize - 1) % 2];
            assert_eq!(pull.ask(now_ms, &peers), Some((peer, round)));
            assert_eq!(pull.deadline_ms(), Some(now_ms + waits_ms), "round {round}");
        };
        asks(&mut pull, 1, 1_000);
        asks(&mut pull, 2, 1_000); // nobody may be there
        assert_eq!(pull.take(peers[0], &part(1, 0), 1_500), None);
        asks(&mut pull, 3, 2_000);
        assert_eq!(pull.take(peers[0], &part(3, 0), 3_000), None);
        assert_eq!(pull.deadline_ms(), Some(5_000));
        asks(&mut pull, 4, 4_000);
        asks(&mut pull, 5, 4_000);
    }
}
