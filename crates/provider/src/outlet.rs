//! What the engine asks the provider to do: peers, files, waiting threads.

use bytes::Bytes;
use trireme_engine::{Channel, Outside};
use trireme_group::{self as group, Incarnation};
use trireme_log::FlushJob;
use trireme_replicator::{self as replicator, Level};
use trireme_transport::{Frame, SendOutcome};

use crate::convert::uuid_to_abi;
use crate::core::{Line, Progress};
use crate::grastate::{Grastate, GrastateError};
use crate::logging::Logger;
use crate::votes::Ballot;
use crate::waiting::Waiting;

/// The parts of [`crate::core::Core`] that the engine's requests concern.
pub struct Outlet<'a> {
    pub line: &'a mut Option<Line>,
    pub waiting: &'a mut Waiting,
    pub progress: &'a mut Progress,
    pub grastate: &'a mut Grastate,
    pub appliers_due: &'a mut usize,
    pub logger: &'a Logger,
}

impl Outside for Outlet<'_> {
    fn send(&mut self, to: &[Incarnation], channel: Channel, bytes: Bytes) {
        let Some(line) = self.line.as_mut() else {
            return;
        };
        // Group and replicator bound their messages far below 4 GiB.
        let Ok(frame) = Frame::new(&[channel.byte()], Some(bytes)) else {
            return;
        };
        for peer in to {
            // Dropped frames are made up for by the protocol: the peer asks again, or Drained comes.
            let _: SendOutcome = line.mesh.send(peer.0.0, frame.clone());
        }
    }

    fn promise(&mut self, ballot: group::Ballot) -> Result<(), String> {
        let Some(line) = self.line.as_mut() else {
            return Ok(());
        };
        let ballot = Ballot {
            number: ballot.number,
            replica: uuid_to_abi(ballot.replica.0),
        };
        line.votes.promise(ballot).map_err(|e| e.to_string())
    }

    fn in_history(&mut self, history: group::Uuid) {
        if let Some(line) = self.line.as_mut() {
            line.mesh.set_history(history.0);
        }
    }

    fn refused(&mut self, reason: String) {
        self.logger
            .error(format!("the cluster does not admit this node: {reason}"));
        self.progress.refused = Some(reason);
    }

    fn note(&mut self, text: &str) {
        self.logger.info(text);
    }

    fn warn(&mut self, text: &str) {
        self.logger.warn(text);
    }

    fn flush(&mut self, job: FlushJob) {
        if let Some(flusher) = self.line.as_ref().and_then(|line| line.flusher.as_ref()) {
            flusher.flush(job);
        }
    }

    fn fail(&mut self, text: &str) {
        self.logger.error(text);
        self.progress.failed = Some(text.to_owned());
        if let Some(line) = self.line.as_mut() {
            line.mesh.abandon();
        }
    }

    fn act(&mut self, action: replicator::Action) {
        use replicator::Action;
        match action {
            Action::Answer { ticket, answer } => self.waiting.answer(ticket, answer),
            Action::WakeAppliers { n } => {
                *self.appliers_due = self.appliers_due.saturating_add(n);
            }
            Action::Log { level, text } => match level {
                Level::Error => self.logger.error(&text),
                Level::Warn => self.logger.warn(&text),
                Level::Info => self.logger.info(&text),
                Level::Debug => self.logger.debug(&text),
            },
            Action::Fatal { text } => {
                self.logger.error(text);
                std::process::abort();
            }
            Action::Admitted => self.progress.admitted = true,
            Action::Closed => self.progress.closed = true,
            Action::SaveState {
                gtid,
                safe_to_bootstrap,
            } => self.grastate_op(|state| {
                state.set(uuid_to_abi(gtid.uuid), gtid.seqno, safe_to_bootstrap)
            }),
            Action::MarkUnsafe => self.grastate_op(Grastate::mark_unsafe),
            Action::MarkSafe => self.grastate_op(Grastate::mark_safe),
            Action::MarkCorrupt => self.grastate_op(Grastate::mark_corrupt),
            Action::MarkUncorrupt => self.grastate.mark_uncorrupt(),
            Action::Submit { .. }
            | Action::SendTo { .. }
            | Action::Read { .. }
            | Action::SetJoined { .. }
            | Action::RecordOutcome { .. }
            | Action::NoteAction { .. }
            | Action::NoteOverrides { .. }
            | Action::PinLog { .. }
            | Action::Leave => unreachable!("the engine handles these"),
        }
    }
}

impl Outlet<'_> {
    fn grastate_op(&mut self, change: impl FnOnce(&mut Grastate) -> Result<(), GrastateError>) {
        if let Err(error) = change(self.grastate) {
            self.logger.error(format!(
                "grastate.dat cannot be written, a restart may need a full state transfer: {error}"
            ));
        }
    }
}
