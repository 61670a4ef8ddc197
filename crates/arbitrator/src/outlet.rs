//! The host effects of an arbitrator: it sends, logs and notes progress for the engine. A server's effects do nothing
//! here.

use bytes::Bytes;
use trireme_engine::{Channel, Host, HostAction, NotKept, ServeJob, StageJob};
use trireme_group::{Incarnation, Term, Uuid};
use trireme_log::FlushJob;
use trireme_node::{Line, Progress};
use trireme_replicator::Level;

use crate::log::Log;

/// The parts of the arbitrator that the engine's requests need.
pub(crate) struct Outlet<'a> {
    pub line: &'a mut Line,
    pub progress: &'a mut Progress,
    pub fatal: &'a mut Option<String>,
    pub log: &'a Log,
}

impl Host for Outlet<'_> {
    fn send(&mut self, to: &[Incarnation], channel: Channel, bytes: Bytes) {
        self.line.send(to, channel, bytes);
    }

    fn queued_bytes(&self, peer: Incarnation) -> Option<usize> {
        self.line.queued_bytes(peer)
    }

    fn promise(&mut self, term: Term) -> Result<(), NotKept> {
        self.line.votes.promise(term).map_err(NotKept::from)
    }

    fn in_log(&mut self, id: Uuid) -> Result<(), NotKept> {
        self.line.votes.set_log(id).map_err(NotKept::from)
    }

    fn in_history(&mut self, history: Uuid) {
        self.line.mesh.set_history(history.0);
    }

    fn refused(&mut self, reason: String) {
        self.progress.refused = Some(reason);
    }

    fn note(&mut self, text: &str) {
        self.tell(Level::Info, text);
    }

    fn warn(&mut self, text: &str) {
        self.tell(Level::Warn, text);
    }

    fn alarm(&mut self, text: &str) {
        self.log.line(Level::Error, text);
    }

    /// Does nothing: there is no other thread, so the engine flushes by itself
    /// ([`trireme_engine::Start::flushes_apart`]).
    fn flush(&mut self, _job: FlushJob) {}

    /// Does nothing: the engine writes large payloads by itself, too.
    fn stage(&mut self, _job: StageJob) {}

    fn serve(&mut self, _job: ServeJob) {}

    fn fail(&mut self, text: &str) {
        self.progress.failed.get_or_insert_with(|| text.to_owned());
        self.line.mesh.abandon();
    }

    fn act(&mut self, action: HostAction) {
        match action {
            HostAction::Log { level, text } => self.tell(level, &text),
            HostAction::Fatal { text } => {
                self.fatal.get_or_insert(text);
                self.line.mesh.abandon();
            }
            HostAction::Admitted => self.progress.admitted = true,
            HostAction::Closed => self.progress.closed = true,
            // There is no server and no database.
            _ => {}
        }
    }
}

impl Outlet<'_> {
    /// Writes a line, if it is not one of many that repeat.
    fn tell(&mut self, level: Level, text: &str) {
        if self.line.admits(level, text) {
            self.log.line(level, text);
        }
    }
}
