//! Ordered write-sets become work for the server's threads, and are released when the work is done.

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::Position;
use trireme_mutants::{Mutant, planted};

use crate::executor::Running;
use crate::gtid::Gtid;
use crate::history::{History, Unread};
use crate::log_reader::{ReadBack, piece_bytes};
use crate::payload::{Memory, Missing, Payload};
use crate::replicator::Replicator;
use crate::state_transfer::Place;
use crate::work::{Apply, Task, WorkId};

impl Replicator {
    /// Gives the server its next callback: at once, or when the state transfer has ended. A callback with a seqno takes
    /// its place in the order.
    pub(crate) fn push_task(&mut self, task: Task, seqno: Option<Seqno>, payload: Payload) {
        if let Some((task, seqno, payload)) = self.transfer.hold_back((task, seqno, payload)) {
            self.enqueue(task, seqno, payload);
        }
    }

    /// Puts a callback into the queue. A diverged node applies nothing more, and an arbitrator nothing at all.
    pub(crate) fn enqueue(&mut self, task: Task, seqno: Option<Seqno>, payload: Payload) {
        let is_applied = !self.lifecycle.has_diverged() && !self.context.is_arbitrator();
        self.executor.enqueue(task, seqno, payload, is_applied);
    }

    /// Queues a write-set that must be applied, and is in the log at this position. It waits with its payload, which
    /// takes `bytes` bytes, or without.
    pub(crate) fn push_apply(&mut self, mut apply: Apply, position: Position, bytes: usize) {
        let none_before = match self.transfer.place() {
            Place::Closed | Place::Admission | Place::Final => return,
            Place::Transfer => !self.transfer.has_spilled(),
            Place::Active => self.executor.queue().missing().is_none(),
        };
        let fits = self.log_reader.has_room(self.context.options());
        let payload = match (apply.data.is_empty(), none_before && fits) {
            (true, _) => Payload::None,
            (false, true) => Payload::here(self.log_reader.memory(), bytes),
            (false, false) => {
                apply.data = Bytes::new();
                Payload::InLog { position, bytes }
            }
        };
        let seqno = apply.gtid.seqno;
        self.push_task(Task::Apply(Box::new(apply)), Some(seqno), payload);
    }

    /// Reads back the payloads that the appliers need next, a piece ahead of them.
    pub(crate) fn fetch_works(&mut self, history: &dyn History) {
        let Some(missing) = self.executor.queue().missing() else {
            return;
        };
        let options = self.context.options();
        let (room, piece) = (self.log_reader.room(options), piece_bytes(options));
        let enough = missing.bytes.max(piece);
        if room < enough && !missing.is_next || self.log_reader.again_ms().is_some() {
            return;
        }
        let memory = self.log_reader.memory().clone();
        self.fetch_into_works(missing, piece.min(room), history, &memory);
    }

    /// Reads back all missing payloads, because the log begins anew, whatever room there is. They do not count as taken
    /// memory: no later payload should have to wait for them.
    pub(crate) fn fetch_all(&mut self, history: &dyn History) {
        while let Some(missing) = self.executor.queue().missing() {
            let most_bytes = self.context.options().thresholds.read_back_bytes;
            if !self.fetch_into_works(missing, most_bytes, history, &Memory::default()) {
                break;
            }
        }
        let must_wait = self.log_reader.again_ms().is_some();
        if let Some(missing) = self.executor.queue().missing().filter(|_| must_wait) {
            // The log is given up now, so there is no later try.
            let lost = Err(Unread::Lost("the log could not be read in time".to_owned()));
            self.was_read_back(missing.first, lost);
        }
    }

    fn fetch_into_works(
        &mut self,
        missing: Missing,
        max_bytes: usize,
        history: &dyn History,
        memory: &Memory,
    ) -> bool {
        let found = self.log_reader.read(missing, max_bytes, history);
        let restored = found.map(|found| self.executor.restore(found, memory));
        self.was_read_back(missing.first, restored)
    }

    /// Reads back the next entries to be processed. Returns the number of bytes, or None if they cannot be read.
    pub(crate) fn fetch_intake(&mut self, history: &dyn History) -> Option<usize> {
        let must_wait = self.log_reader.again_ms().is_some();
        let missing = self.intake.missing().filter(|_| !must_wait)?;
        let options = self.context.options();
        let before = self.payload_bytes();
        let max_bytes = piece_bytes(options).min(self.log_reader.room(options));
        let found = self.log_reader.read(missing, max_bytes, history);
        let memory = self.log_reader.memory();
        let restored = found.map(|found| self.intake.restore(found, memory));
        self.was_read_back(missing.first, restored)
            .then(|| self.payload_bytes() - before)
    }

    fn was_read_back(&mut self, position: Position, result: Result<usize, Unread>) -> bool {
        match (self.log_reader).read_back(&self.context, position, result) {
            ReadBack::Restored(_) => true,
            ReadBack::Later => false,
            ReadBack::Lost(text) => {
                self.fatal(text);
                false
            }
        }
    }

    /// Returns the GTID of an ordered seqno.
    pub(crate) fn ordered_gtid(&self, seqno: Seqno) -> Gtid {
        Gtid {
            uuid: self.context.history().unwrap_or(self.executor.history()),
            seqno,
        }
    }

    /// Handles the end of a callback of a recv() thread.
    pub(crate) fn work_done(&mut self, work: WorkId, ok: bool) {
        match self.executor.done(work) {
            Some(Running::Apply { seqno, isolation }) => {
                if isolation {
                    self.action_ended(seqno);
                }
                if !ok && !planted(Mutant::VoteLoserStays) {
                    self.become_inconsistent(&format!("applying seqno {seqno} failed"));
                }
                self.flow_control.applied();
                self.executor.applied(seqno);
            }
            Some(Running::View(view)) => self.view_shown(&view, ok),
            Some(Running::Other) if !ok => self.fatal("the server refused a callback"),
            _ => {}
        }
    }
}
