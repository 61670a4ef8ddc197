//! The transfer of the control state from a member to a joiner, in parts. With the last part the joiner is in step with
//! the group: from there it certifies as every member does.

use trireme_group::{Configuration, Incarnation, Position};

use crate::action::Level;
use crate::control::Control;
use crate::peer_message::{PeerMessage, SnapshotChunk};
use crate::replicator::Replicator;
use crate::state_transfer::Place;

impl Replicator {
    /// Pulls the control state: waits for a configuration with this node in it, then asks its members, one after the
    /// other, for the control state at or above it. Deliveries queue up meanwhile.
    pub(crate) fn pursue_snapshot(&mut self) {
        if self.context.control().is_some() {
            return;
        }
        let Some((at_least, configuration)) = self.admitting_configuration() else {
            return;
        };
        let (me, now_ms) = (self.context.me(), self.context.now_ms());
        // Voters first: they have joined. An arbitrator has the control state as well, but may be far away.
        let mut peers: Vec<_> = configuration
            .members
            .iter()
            .filter(|m| m.incarnation != me)
            .collect();
        peers.sort_by_key(|m| (!m.voter, m.arbitrator, m.incarnation));
        let peers: Vec<Incarnation> = peers.into_iter().map(|m| m.incarnation).collect();
        if let Some((peer, round)) = self.transfer.ask_control_state(now_ms, &peers) {
            self.send(peer, &PeerMessage::SnapshotRequest { round, at_least });
        }
    }

    /// Returns the position at which this node was admitted, and the last known configuration with this node.
    fn admitting_configuration(&self) -> Option<(Position, &Configuration)> {
        let mut with_me = (self.intake.configurations())
            .filter(|(_, configuration)| configuration.index_of(self.context.me()).is_some());
        let (position, first) = with_me.next()?;
        Some((
            position,
            with_me.next_back().map_or(first, |(_, last)| last),
        ))
    }

    /// Sends the own control state, if it is recent enough.
    pub(crate) fn serve_snapshot(&mut self, to: Incarnation, round: u64, at_least: Position) {
        let ready = self.context.control().filter(|c| c.position >= at_least);
        let Some(control) = ready.filter(|_| self.transfer.place() != Place::Admission) else {
            return self.send(to, &PeerMessage::SnapshotRefused { round });
        };
        let bytes = control.encode();
        let chunk_bytes = self.context.options().thresholds.chunk_bytes.max(1);
        for offset in (0..bytes.len()).step_by(chunk_bytes) {
            let part = bytes.slice(offset..bytes.len().min(offset + chunk_bytes));
            let (offset, total) = (offset as u64, bytes.len() as u64);
            self.send(
                to,
                &PeerMessage::SnapshotChunk(SnapshotChunk {
                    round,
                    offset,
                    total,
                    part,
                }),
            );
        }
    }

    /// Takes in a refusal: asks the next member soon.
    pub(crate) fn snapshot_refused(&mut self, from: Incarnation, round: u64) {
        let now_ms = self.context.now_ms();
        self.transfer.control_state_refused(from, round, now_ms);
    }

    /// Takes in a part; with the last one this node is in step with the group.
    pub(crate) fn snapshot_chunk(&mut self, from: Incarnation, chunk: &SnapshotChunk) {
        let now_ms = self.context.now_ms();
        let Some(bytes) = self.transfer.control_state_part(from, chunk, now_ms) else {
            return;
        };
        let at_least = self
            .admitting_configuration()
            .map_or(0, |(position, _)| position);
        match Control::decode(bytes) {
            Ok(control)
                if control.position >= at_least
                    && control.state_of(self.context.me()).is_some()
                    && self
                        .database
                        .is_of_its_branch(&control, self.intake.configurations()) =>
            {
                let position = control.position;
                self.log(
                    Level::Debug,
                    format!("control state at position {position} came from {from}"),
                );
                self.context.set_control(Some(control));
                self.intake.drop_up_to(position);
                self.begin_transfer(Some(from));
            }
            Ok(_) => self.snapshot_refused(from, chunk.round),
            Err(error) => {
                self.log(
                    Level::Warn,
                    format!("control state of {from} cannot be used: {error}"),
                );
                self.snapshot_refused(from, chunk.round);
            }
        }
    }
}
