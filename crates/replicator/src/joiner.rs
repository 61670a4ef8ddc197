//! How a node gets the database that belongs to its place in the order: from what it has plus the
//! missing entries (IST), or from a donor's snapshot (SST). Rules 6 and 19.

use std::collections::VecDeque;

use bytes::Bytes;
use trireme_certification::Seqno;
use trireme_group::{Checkpoint, Incarnation};

use crate::action::{Action, Code, Level};
use crate::gtid::Gtid;
use crate::history::History;
use crate::ist::Ist;
use crate::payload::Payload;
use crate::progress::Course;
use crate::replicator::{Replicator, Stage};
pub(crate) use crate::snapshot::SnapshotPull;
use crate::work::Task;

/// Why the process ends, after the words of Galera that people, and MariaDB's suites, look for at the line's beginning.
pub(crate) fn never_received(why: &str) -> String {
    format!("Will never receive state. Need to abort. {why}")
}

/// A state transfer under way.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// Last seqno that was ordered before this node was in step: no delivery brings it.
    pub upto: Seqno,
    pub phase: TransferPhase,
    /// What was delivered meanwhile.
    pub later: VecDeque<(Task, Option<Seqno>, Payload)>,
    /// One of these is without its payload, and so are all after it.
    pub spilled: bool,
    /// It was said that no node has a database to give.
    pub told_nobody_has: bool,
}

#[derive(Debug)]
pub(crate) enum TransferPhase {
    Ist(Ist),
    /// The server prepares itself to receive.
    Requesting,
    /// Nobody could send; asks again then.
    Retry {
        request: Bytes,
        at_ms: u64,
        /// An earlier request was given up. On another branch it may have been ordered after all, and a donor sends.
        given_up: bool,
    },
    /// The request is on its way into the order.
    Submitted {
        request: Bytes,
    },
    /// A donor sends. None: it is done, the server has still to say so.
    Receiving {
        donor: Option<Incarnation>,
    },
    /// The server is prepared; what the order holds is not known again yet.
    Prepared {
        request: Option<Bytes>,
    },
    /// The server has the snapshot; what the order holds is not known again yet.
    Brought {
        gtid: Gtid,
        rcode: i32,
    },
    /// Nothing can be done.
    GivenUp,
}

impl Transfer {
    /// From sst_request to sst_received.
    pub(crate) fn is_with_scripts(&self) -> bool {
        !matches!(self.phase, TransferPhase::Ist(_))
    }

    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        match &self.phase {
            TransferPhase::Ist(ist) => ist.deadline_ms(),
            TransferPhase::Retry { at_ms, .. } => Some(*at_ms),
            _ => None,
        }
    }
}

impl Replicator {
    /// The group's log begins anew: what was delivered is still applied here, but what comes next
    /// is not known without a peer's control state.
    pub(crate) fn reset(&mut self, checkpoint: &Checkpoint) {
        if matches!(self.stage, Stage::Closed | Stage::Final)
            || self.lifecycle.is_founding() && !self.lifecycle.is_connected()
        {
            return;
        }
        self.log(
            Level::Debug,
            format!("the log begins anew above position {}", checkpoint.position),
        );
        let is_used = self.lifecycle.is_connected() && !self.executor.history().is_nil();
        let brought_to = is_used.then(|| self.gtid_of(self.executor.top()));
        let control = self.context.control();
        (self.database).log_begins_anew(control, brought_to, &checkpoint.overrides);
        for (_, sent) in self.submissions.take_all() {
            self.give_up(sent, true);
        }
        for ticket in self.reads.give_up_from(self.executor.next_to_pass()) {
            self.answer_sync_wait(ticket, Code::TrxFail);
        }
        self.lifecycle.give_up_founding();
        self.course = None;
        self.lifecycle.lose_primary();
        self.announcements.forget_joined();
        self.announcements.forget_synced();
        self.context.set_control(None);
        // What came behind it is not known any more, but its server has to hear of it.
        if let Some(component) = self.intake.take_non_primary() {
            self.show_non_primary(component);
        }
        self.distrust_log_after_script();
        self.intake.begin_above(checkpoint.position);
        self.retention.forget_log();
        self.executor.log_begins_anew();
        let before = std::mem::replace(&mut self.stage, Stage::Admission(SnapshotPull::default()));
        if let Stage::Transfer(transfer) = before {
            self.interrupted = transfer.is_with_scripts().then_some(transfer.phase);
        }
    }

    /// In step with the group from here on: decides how the database follows.
    /// `sender` of the control state is asked first for missing entries.
    pub(crate) fn begin_transfer(&mut self, sender: Option<Incarnation>) {
        if self.context.is_arbitrator() {
            return self.begin_arbitration(sender.is_some());
        }
        if let Some(phase) = self.interrupted.take() {
            return self.resume_snapshot(phase);
        }
        let Some(control) = self.context.control() else {
            return;
        };
        let (history, upto) = (control.history, control.seqno());
        let is_resumed = self.lifecycle.is_connected();
        let fitness = self.database.fitness(control);
        let (local, usable) = (self.database.local(), fitness.is_usable);
        let sources = self.ist_sources(sender);
        self.lifecycle.enter_primary();
        self.out.push(Action::Admitted);
        if let Some(fork) = fitness.fork.filter(|_| fitness.is_forked) {
            let text = format!(
                "Gap in state sequence. Need state transfer. The database, at {local}, and the cluster have gone on without each \
                 other after seqno {fork}: what it holds above that is dropped"
            );
            self.log(Level::Warn, text);
        }
        if fitness.is_here && !usable {
            let text = format!(
                "the database at {local} is more views behind than the cluster remembers: it needs a full state transfer"
            );
            self.log(Level::Info, text);
        }
        self.voting.forget_dummies();
        let phase = if usable {
            if !is_resumed {
                self.executor.begin_at(history, local.seqno);
            }
            self.course = Some(Course::new(local.seqno, self.context.now_ms()));
            let mut ist = Ist::new(local.seqno + 1, sources, self.context.now_ms());
            // What was read back from the own log is on this branch.
            ist.own_log = fitness.fork.is_none() || sender.is_none();
            ist.begun = is_resumed && self.lifecycle.is_server_running();
            self.note_overrides();
            TransferPhase::Ist(ist)
        } else {
            TransferPhase::Requesting
        };
        let needs_snapshot = matches!(phase, TransferPhase::Requesting);
        self.stage = Stage::Transfer(Transfer {
            upto,
            phase,
            later: VecDeque::new(),
            spilled: false,
            told_nobody_has: false,
        });
        self.show_connected();
        self.review_disputes();
        self.review_donation();
        if needs_snapshot {
            self.request_snapshot();
        }
    }

    /// In step with the group from here on. There is no database that would have to follow.
    /// `anew`: the log has nothing of what came before.
    fn begin_arbitration(&mut self, anew: bool) {
        let Some(control) = self.context.control() else {
            return;
        };
        let (history, seqno) = (control.history, control.seqno());
        if anew {
            let text = format!(
                "this arbitrator's log begins at seqno {}: it gets its vote when all nodes that serve have applied what \
                 comes before",
                seqno + 1
            );
            self.log(Level::Info, text);
        }
        self.executor.begin_at(history, seqno);
        self.joined_at = seqno;
        self.lifecycle.enter_primary();
        self.stage = Stage::Active;
        self.out.push(Action::Admitted);
    }

    /// Moves on whatever transfer is under way.
    pub(crate) fn pursue_state(&mut self, history: &dyn History) {
        self.tell_progress();
        self.pursue_snapshot();
        self.process_intake(history);
        self.retry_state_request();
        while self.pursue_ist(history) {}
        self.pursue_membership(history);
    }

    /// The database has caught up with the order: what was delivered meanwhile follows.
    pub(crate) fn finish_transfer(&mut self) {
        let Stage::Transfer(transfer) = std::mem::replace(&mut self.stage, Stage::Active) else {
            return; // `pursue_ist` has just seen it
        };
        self.joined_at = self.joined_at.max(self.executor.top());
        self.review_presumed();
        self.lifecycle.server_runs(); // the view that this node came in with, if none before
        // A snapshot that has brought a primary view has brought it to a server that was never without.
        let top = self.executor.top();
        let is_brought = |(task, seqno, _): &(Task, Option<Seqno>, Payload)| {
            matches!(task, Task::View(view) if view.primary) && seqno.is_some_and(|at| at <= top)
        };
        let last_brought = transfer.later.iter().rposition(is_brought);
        for (at, (task, seqno, payload)) in transfer.later.into_iter().enumerate() {
            let is_past = last_brought.is_some_and(|last| at < last);
            if !(is_past && matches!(task, Task::View(_))) {
                self.enqueue(task, seqno, payload);
            }
        }
        self.tell_synced();
    }
}
