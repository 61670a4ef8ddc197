//! The provider's [`Host`]: carries out the engine's requests under the node's lock. Messages go to the mesh's
//! queues, promises and grastate.dat to their files, answers to the waiting threads' slots. Flushes and staging are
//! handed to other threads.

use std::time::Instant;

use bytes::Bytes;
use trireme_engine::{Channel, Host, HostAction, NotKept, ServeJob, StageJob};
use trireme_group::{self as group, Incarnation};
use trireme_log::FlushJob;
use trireme_node::{CommitClock, Line, Progress, monotonic_ns};
use trireme_replicator::{self as replicator, Level};

use crate::convert::uuid_to_abi;
use crate::disk_threads::DiskThreads;
use crate::grastate::{Grastate, GrastateError};
use crate::logging::Logger;
use crate::termination::end_process;
use crate::waiting::Waiting;

/// The parts of [`crate::core::Core`] that the engine's requests need.
pub struct Outlet<'a> {
    pub line: &'a mut Option<Line>,
    pub disk: &'a mut DiskThreads,
    pub waiting: &'a mut Waiting,
    pub progress: &'a mut Progress,
    pub grastate: &'a mut Grastate,
    pub appliers_due: &'a mut usize,
    pub commit_clock: &'a mut CommitClock,
    /// Member id of this connection.
    pub me: Incarnation,
    pub logger: &'a Logger,
}

impl Host for Outlet<'_> {
    fn send(&mut self, to: &[Incarnation], channel: Channel, bytes: Bytes) {
        if let Some(line) = self.line.as_mut() {
            line.send(to, channel, bytes);
        }
    }

    fn queued_bytes(&self, peer: Incarnation) -> Option<usize> {
        self.line.as_ref()?.queued_bytes(peer)
    }

    fn promise(&mut self, term: group::Term) -> Result<(), NotKept> {
        let Some(line) = self.line.as_mut() else {
            return Ok(());
        };
        line.votes.promise(term).map_err(NotKept::from)
    }

    fn in_log(&mut self, id: group::Uuid) -> Result<(), NotKept> {
        let Some(line) = self.line.as_mut() else {
            return Ok(());
        };
        line.votes.set_log(id).map_err(NotKept::from)
    }

    fn in_history(&mut self, history: group::Uuid) {
        if let Some(line) = self.line.as_mut() {
            line.mesh.set_history(history.0);
        }
    }

    fn refused(&mut self, reason: String) {
        let text = format!("the cluster does not admit this node: {reason}");
        if self.progress.refuse(reason, Instant::now()) {
            self.logger.error(text);
        }
    }

    fn note(&mut self, text: &str) {
        if self.admits(Level::Info, text) {
            self.logger.note(text);
        }
    }

    fn warn(&mut self, text: &str) {
        self.log(Level::Warn, text);
    }

    fn alarm(&mut self, text: &str) {
        self.logger.error(text);
    }

    fn submitted(&mut self, number: u64, payload: &Bytes) {
        if let Some(trx) = replicator::transaction_of(payload) {
            (self.commit_clock).submitted(number, trx, monotonic_ns());
        }
    }

    fn log_write_begins(&mut self) {
        self.commit_clock.log_write_begins(monotonic_ns());
    }

    fn log_written(&mut self) {
        self.commit_clock.log_written(monotonic_ns());
    }

    fn appended(&mut self, entry: &group::Entry) {
        if let Some(id) = entry.submission().filter(|id| id.incarnation == self.me) {
            self.commit_clock.appended(id.number, monotonic_ns());
        }
    }

    fn delivered(&mut self, _position: group::Position, delivery: &group::Delivery) {
        match delivery {
            group::Delivery::Submission { id, .. } if id.incarnation == self.me => {
                self.commit_clock.delivered(id.number, monotonic_ns());
            }
            _ => {}
        }
    }

    fn took_in(&mut self, _node: &replicator::Replicator) {
        if self.commit_clock.is_certifying() {
            self.commit_clock.certified(monotonic_ns());
        }
    }

    fn flush(&mut self, job: FlushJob) {
        self.disk.flush(job);
    }

    fn stage(&mut self, job: StageJob) {
        self.disk.stage(job);
    }

    fn serve(&mut self, job: ServeJob) {
        self.disk.serve(job);
    }

    fn fail(&mut self, text: &str) {
        self.logger.error(text);
        self.progress.failed = Some(text.to_owned());
        if let Some(line) = self.line.as_mut() {
            line.mesh.abandon();
        }
    }

    fn act(&mut self, action: HostAction) {
        match action {
            HostAction::Answer { ticket, answer } => self.waiting.answer(ticket, answer),
            HostAction::WakeAppliers { n } => {
                *self.appliers_due = self.appliers_due.saturating_add(n);
            }
            HostAction::Log { level, text } => self.log(level, &text),
            HostAction::Fatal { text } => {
                self.logger.error(text);
                end_process();
            }
            HostAction::Admitted => self.progress.admitted = true,
            HostAction::Closed => self.progress.closed = true,
            HostAction::SaveState {
                gtid,
                safe_to_bootstrap,
            } => {
                let uuid = uuid_to_abi(gtid.uuid);
                let saved = self.grastate.set(uuid, gtid.seqno, safe_to_bootstrap);
                match gtid.is_known() {
                    true => self.may_save(saved),
                    false => self.must_save(saved),
                }
            }
            HostAction::MarkUnsafe => {
                let saved = self.grastate.mark_unsafe();
                self.must_save(saved);
            }
            HostAction::MarkSafe => {
                let saved = self.grastate.mark_safe();
                self.may_save(saved);
            }
            HostAction::MarkCorrupt => {
                let saved = self.grastate.mark_corrupt();
                self.must_save(saved);
            }
            HostAction::MarkUncorrupt => self.grastate.mark_uncorrupt(),
        }
    }
}

impl Outlet<'_> {
    /// Logs a line, if it is not one of many that repeat.
    fn log(&mut self, level: Level, text: &str) {
        if self.admits(level, text) {
            self.logger.log_at(level, text);
        }
    }

    fn admits(&mut self, level: Level, text: &str) -> bool {
        (self.line.as_mut()).is_none_or(|line| line.admits(level, text))
    }

    /// Takes in the result of a write that names a position or a history: without it the file says too little.
    fn may_save(&mut self, saved: Result<(), GrastateError>) {
        if let Err(error) = saved {
            self.logger.error(format!(
                "cannot write grastate.dat: {error}; a restart may need a full state transfer"
            ));
        }
    }

    /// Takes in the result of a write that takes a position or a history out of the file: without it the file says too
    /// much.
    fn must_save(&mut self, saved: Result<(), GrastateError>) {
        if let Err(error) = saved {
            self.logger.error(format!(
                "cannot write grastate.dat: {error}; this process ends, because a restart would rely on the old state. \
                 Repair the disk"
            ));
            end_process();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::ffi::{CStr, c_char};
    use std::net::{SocketAddr, TcpListener};
    use std::path::Path;
    use std::sync::Mutex;

    use trireme_engine::Engine;
    use trireme_node::url::ClusterUrl;
    use trireme_node::{Station, setup};
    use trireme_replicator::Replicator;
    use trireme_transport::Poller;
    use trireme_wsrep_abi::LogLevel;

    use super::*;
    use crate::core::Core;
    use crate::options::Options;

    static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

    unsafe extern "C" fn record(_: LogLevel, message: *const c_char) {
        // SAFETY: the logger passes NUL-terminated text.
        let text = unsafe { CStr::from_ptr(message) };
        let text = text.to_string_lossy().into_owned();
        LINES.lock().unwrap().push(text);
    }

    /// Returns a connection to nobody, its poller, and the address at which it listens.
    pub(crate) fn line(dir: &Path) -> (Line, Poller, SocketAddr) {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let text = format!("gmcast.listen_addr=tcp://{address}");
        let options = Options::new(&dir.display().to_string(), "", &text).unwrap();
        let votes = setup::open_votes(&options).unwrap();
        let me = setup::this_member(&options, &votes).unwrap();
        let nobody = ClusterUrl::default();
        let mesh = setup::open_mesh("test", &nobody, &options, &me, &votes, None);
        let (mesh, poller) = mesh.unwrap();
        (Line::new(mesh, votes), poller, address)
    }

    fn core(dir: &Path) -> Core {
        let engine = Engine::new(Replicator::new(Default::default()));
        let (grastate, _) = Grastate::open(dir).unwrap();
        let mut core = Core::new(engine, grastate, Logger::new(Some(record)));
        core.line = Some(line(dir).0);
        core
    }

    #[test]
    fn of_lines_that_repeat_only_errors_are_all_written() {
        let dir = tempfile::tempdir().unwrap();
        let mut core = core(dir.path());
        let (_, mut outlet) = core.parts();
        for n in 0..50 {
            outlet.note(&format!("a note, {n}"));
            outlet.warn(&format!("a warning, {n}"));
            let text = format!("a line, {n}");
            let level = Level::Info;
            outlet.act(HostAction::Log { level, text });
            outlet.alarm(&format!("an alarm, {n}"));
        }
        let lines = LINES.lock().unwrap();
        let written = |what| lines.iter().filter(|line| line.starts_with(what)).count();
        let limited = ["a note", "a warning", "a line"].map(written);
        assert_eq!((limited, written("an alarm")), ([20; 3], 50));
    }
}
