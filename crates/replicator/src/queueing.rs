//! What was ordered becomes work for the server's threads, and what they have done is released.

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::Incarnation;
use trireme_mutants::{Mutant, planted};

use crate::action::Action;
use crate::gtid::Gtid;
use crate::payload::Payload;
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
        if self.inconsistent || self.context.is_arbitrator() {
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
            self.counters.queued(length);
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
