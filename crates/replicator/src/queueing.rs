//! What was ordered becomes work for the server's threads, and what they have done is released.

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::{Incarnation, Position};
use trireme_mutants::{Mutant, planted};

use crate::action::Action;
use crate::gtid::Gtid;
use crate::history::{History, Unread};
use crate::log_reader::{ReadBack, piece_bytes};
use crate::payload::{Memory, Missing, Payload};
use crate::replicator::{Replicator, Stage};
use crate::work::{Apply, Task, WorkId};
use crate::works::Running;
use crate::writeset::WriteSet;

impl Replicator {
    /// Gives the server its next callback: at once, or when the state transfer is through. One with
    /// a seqno takes its place in the order.
    pub(crate) fn push_task(&mut self, task: Task, seqno: Option<Seqno>, payload: Payload) {
        match &mut self.stage {
            Stage::Closed | Stage::Admission(_) | Stage::Final => {}
            Stage::Transfer(transfer) => {
                transfer.spilled |= payload.is_in_log();
                transfer.later.push_back((task, seqno, payload));
            }
            Stage::Active => self.enqueue(task, seqno, payload),
        }
    }

    /// Puts a callback into the queue, unless a snapshot has brought its effects already.
    pub(crate) fn enqueue(&mut self, task: Task, seqno: Option<Seqno>, payload: Payload) {
        if let Some(seqno) = seqno {
            if seqno <= self.order.top() {
                return;
            }
            self.order.add(seqno);
        }
        if self.lifecycle.has_diverged() || self.context.is_arbitrator() {
            return self.skip(&task);
        }
        let after = match (&task, seqno) {
            (Task::Synced, _) => Seqno::MIN,
            (_, Some(seqno)) => seqno - 1,
            (_, None) => self.order.top(),
        };
        let is_apply = matches!(task, Task::Apply(_));
        if let Task::Apply(apply) = &task {
            self.counters.apply_waits += u64::from(apply.depends_on > self.order.low());
        }
        self.works.push(task, after, payload);
        if is_apply {
            let length = self.works.applies();
            self.counters.recv_queue.queued(length);
        }
    }

    /// A diverged node applies nothing more, and an arbitrator nothing at all; the places in the order
    /// are used up.
    pub(crate) fn skip(&mut self, task: &Task) {
        let seqno = match task {
            Task::Apply(apply) => apply.gtid.seqno,
            Task::View(view) if view.primary => view.gtid.seqno,
            _ => return,
        };
        if seqno <= self.order.low() {
            // The view that an incremental transfer begins with has no place of its own ([`Self::ist_begins`]).
            self.shown_low = None;
            return;
        }
        self.order.pass(seqno);
        self.released(seqno);
    }

    /// A write-set is to be applied that is in the log at this position: it waits with its payload, which
    /// takes so many bytes, or without.
    pub(crate) fn push_apply(&mut self, mut apply: Apply, position: Position, bytes: usize) {
        let none_before = match &self.stage {
            Stage::Closed | Stage::Admission(_) | Stage::Final => return,
            // Whatever waits without its payload, all after it does, too: it is read back in order.
            Stage::Transfer(transfer) => !transfer.spilled,
            Stage::Active => self.works.missing().is_none(),
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

    /// Reads back what the appliers come to next, a piece ahead of them.
    pub(crate) fn fetch_works(&mut self, history: &dyn History) {
        let Some(missing) = self.works.missing() else {
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

    /// The log begins anew: what waits without its payload gets it, whatever room there is. It does not count: nothing
    /// that comes later may have to wait for it.
    pub(crate) fn fetch_all(&mut self, history: &dyn History) {
        while let Some(missing) = self.works.missing() {
            let most_bytes = self.context.options().thresholds.read_back_bytes;
            if !self.fetch_into_works(missing, most_bytes, history, &Memory::default()) {
                break;
            }
        }
        let must_wait = self.log_reader.again_ms().is_some();
        if let Some(missing) = self.works.missing().filter(|_| must_wait) {
            // There is no later: the log is given up now.
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
        let restored = found.map(|found| self.works.restore(found, memory));
        self.was_read_back(missing.first, restored)
    }

    /// Reads back what is to be processed next; gives how many bytes, None if that cannot be.
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

    pub(crate) fn apply_task(
        &self,
        source: Incarnation,
        write_set: &WriteSet,
        seqno: Seqno,
        depends_on: Seqno,
        failed: bool,
    ) -> Apply {
        let uuid = self.context.history().unwrap_or(self.applied_history);
        Apply {
            gtid: Gtid { uuid, seqno },
            depends_on,
            flags: if failed {
                write_set.dummy_flags()
            } else {
                write_set.apply_flags()
            },
            source,
            trx: write_set.trx,
            conn: write_set.conn,
            data: if failed {
                Bytes::new()
            } else {
                write_set.data.clone()
            },
        }
    }

    /// Releases a seqno that has passed commit order.
    pub(crate) fn released(&mut self, seqno: Seqno) {
        let in_order = seqno == self.order.low() + 1;
        self.counters
            .out_of_order_left
            .add(f64::from(u8::from(!in_order)));
        self.order.release(seqno);
    }

    /// From here on the database holds the action (rule 13).
    pub(crate) fn action_ended(&mut self, seqno: Seqno) {
        let gtid = self.gtid_of(seqno);
        self.out.push(Action::NoteAction { gtid, ended: true });
        self.out.push(Action::MarkSafe);
    }

    /// A callback of a recv() thread has returned.
    pub(crate) fn work_done(&mut self, work: WorkId, ok: bool) {
        match self.works.done(work) {
            Some(Running::Apply { seqno, isolation }) => {
                if isolation {
                    self.action_ended(seqno);
                }
                if !ok && !planted(Mutant::VoteLoserStays) {
                    self.become_inconsistent(&format!("applying seqno {seqno} failed"));
                }
                if self.order.is_inside(seqno) {
                    self.order.leave(seqno);
                }
                if !self.order.has_passed(seqno) {
                    self.order.pass(seqno);
                }
                self.flow_control.applied();
                self.released(seqno);
            }
            Some(Running::View(view)) => self.view_shown(&view, ok),
            Some(Running::Other) if !ok => self.fatal("the server refused a callback"),
            _ => {}
        }
    }
}
