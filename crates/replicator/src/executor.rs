//! The executor: ordered write-sets wait for the server's threads, commit in the order of their seqnos, and are released.
//!
//! It owns the commit order, the apply queue, this node's transactions and its total-order actions, and the history whose seqnos
//! it counts. In come ordered write-sets and calls of the server's threads; out go answers, and what is ready or has ended.
//! Every seqno passes commit order once, then it is released once. The history and the order outlast a connection.

mod apply_queue;
mod conflicts;
mod counters;
mod isolation;
mod order;
mod own_actions;
mod own_transactions;
mod transactions;

use trireme_certification::Seqno;
use trireme_group::{Delivery, Position, Uuid};

use crate::gtid::Gtid;
use crate::payload::{Memory, Payload};
use crate::work::{Task, View, Work, WorkId};
use apply_queue::ApplyQueue;
use conflicts::Conflicts;
use isolation::Isolations;
use order::Order;
use transactions::Transactions;

pub(crate) use apply_queue::{Announced, Running};
pub use conflicts::{ConflictCounts, ConflictKind, Loss, Winner};
pub(crate) use counters::ExecutorCounters;
pub(crate) use own_transactions::Entry;
pub(crate) use transactions::Ordered;

pub(crate) struct Executor {
    order: Order,
    /// The history that `order` counts in; nil before anything of it is here.
    history: Uuid,
    /// While the synthetic first view is shown: `last_committed` for the server meanwhile.
    shown_low: Option<Seqno>,
    queue: ApplyQueue,
    transactions: Transactions,
    isolations: Isolations,
    conflicts: Conflicts,
    counters: ExecutorCounters,
}

impl Executor {
    pub(crate) fn new() -> Executor {
        Executor {
            order: Order::new(-1),
            history: Uuid::NIL,
            shown_low: None,
            queue: ApplyQueue::default(),
            transactions: Transactions::default(),
            isolations: Isolations::default(),
            conflicts: Conflicts::default(),
            counters: ExecutorCounters::default(),
        }
    }

    /// A new connection begins: the order and its history stay.
    pub(crate) fn start_over(&mut self) {
        self.queue.start_over();
        self.transactions.clear();
        self.isolations.clear();
    }

    /// The database is at this seqno of this history.
    pub(crate) fn begin_at(&mut self, history: Uuid, seqno: Seqno) {
        self.history = history;
        self.order = Order::new(seqno);
    }

    /// The database does not count: a snapshot has to take its place.
    pub(crate) fn forget_history(&mut self) {
        self.history = Uuid::NIL;
    }

    /// The history of the database; nil before anything of it is here.
    pub(crate) fn history(&self) -> Uuid {
        self.history
    }

    pub(crate) fn gtid_of(&self, seqno: Seqno) -> Gtid {
        Gtid {
            uuid: self.history,
            seqno,
        }
    }

    /// last_committed_id(): nil and -1 before the first view.
    pub(crate) fn last_committed(&self) -> Gtid {
        match self.history.is_nil() {
            true => Gtid::UNDEFINED,
            false => self.gtid_of(self.shown_low.unwrap_or(self.order.low())),
        }
    }

    pub(crate) fn counters(&self) -> &ExecutorCounters {
        &self.counters
    }

    /// FLUSH STATUS.
    pub(crate) fn reset_counters(&mut self) {
        self.counters = ExecutorCounters::default();
    }

    // --- the order

    /// Everything up to here is released.
    pub(crate) fn low(&self) -> Seqno {
        self.order.low()
    }

    /// The last seqno that has come.
    pub(crate) fn top(&self) -> Seqno {
        self.order.top()
    }

    /// Everything that has come is released.
    pub(crate) fn is_drained(&self) -> bool {
        self.order.is_drained()
    }

    /// Everything before this seqno has left commit order.
    pub(crate) fn next_to_pass(&self) -> Seqno {
        self.order.next_to_pass()
    }

    /// True if it has left commit order, or will pass by itself.
    pub(crate) fn has_passed(&self, seqno: Seqno) -> bool {
        self.order.has_passed(seqno)
    }

    /// This seqno leaves commit order.
    pub(crate) fn leave(&mut self, seqno: Seqno) {
        self.order.leave(seqno);
    }

    /// A donor's state: nothing above `seqno` commits until [`Self::unhold`].
    pub(crate) fn hold_above(&mut self, seqno: Seqno) {
        self.order.hold(seqno);
    }

    /// Ends the first [`Self::hold_above`].
    pub(crate) fn unhold(&mut self) {
        self.order.unhold();
    }

    /// Releases a seqno that has passed commit order.
    fn release_seqno(&mut self, seqno: Seqno) {
        let in_order = seqno == self.order.low() + 1;
        self.counters.released(in_order);
        self.order.release(seqno);
    }

    // --- the apply queue, for whoever reads

    /// Number of write-sets that wait.
    pub(crate) fn waiting_applies(&self) -> usize {
        self.queue.applies()
    }

    /// The callbacks that wait or run.
    pub(crate) fn queue(&self) -> &ApplyQueue {
        &self.queue
    }

    /// True if the next callback is the view that makes a donor's server one no more, and nothing else is under way.
    pub(crate) fn ends_donor_next(&self) -> bool {
        self.queue.ends_donor_next(self.order.low())
    }

    // --- callbacks come in

    /// Puts a callback into the queue, unless a snapshot has brought its effects already. One with a seqno takes its place in
    /// the order. `is_applied`: false for a node that applies nothing (any more): the place is used up.
    pub(crate) fn enqueue(
        &mut self,
        task: Task,
        seqno: Option<Seqno>,
        payload: Payload,
        is_applied: bool,
    ) {
        if let Some(seqno) = seqno {
            if seqno <= self.order.top() {
                return;
            }
            self.order.add(seqno);
        }
        if !is_applied {
            return self.skip(&task);
        }
        let after = match (&task, seqno) {
            (Task::Synced, _) => Seqno::MIN,
            (_, Some(seqno)) => seqno - 1,
            (_, None) => self.order.top(),
        };
        let depends_on = match &task {
            Task::Apply(apply) => Some(apply.depends_on),
            _ => None,
        };
        self.queue.push(task, after, payload);
        if let Some(depends_on) = depends_on {
            let waits = depends_on > self.order.low();
            self.counters.queued(waits, self.queue.applies());
        }
    }

    /// A callback without a place in the order: after all that has come.
    pub(crate) fn push_last(&mut self, task: Task) {
        self.queue.push(task, self.order.top(), Payload::None);
    }

    /// A callback without a place in the order: whatever is still to be released.
    pub(crate) fn push_at_once(&mut self, task: Task) {
        self.queue.push(task, Seqno::MIN, Payload::None);
    }

    /// Before the first missing entry: the server is shown these views of where its database is. They have no place in the order;
    /// `last_committed` is below them meanwhile.
    pub(crate) fn show_first(&mut self, at: Seqno, views: impl IntoIterator<Item = View>) {
        self.shown_low = Some(at - 1);
        for view in views {
            self.queue.push(Task::View(view), at, Payload::None);
        }
    }

    /// Takes in payloads that were read back; gives how many.
    pub(crate) fn restore(&mut self, found: Vec<(Position, Delivery)>, memory: &Memory) -> usize {
        self.queue.restore(found, memory)
    }

    /// The place in the order of a callback that the server does not get is used up.
    fn skip(&mut self, task: &Task) {
        let seqno = match task {
            Task::Apply(apply) => apply.gtid.seqno,
            Task::View(view) if view.primary => view.gtid.seqno,
            _ => return,
        };
        if seqno <= self.order.low() {
            // The view that an incremental transfer begins with has no place of its own ([`Self::show_first`]).
            self.shown_low = None;
            return;
        }
        self.order.pass(seqno);
        self.release_seqno(seqno);
    }

    // --- callbacks go out

    /// The next callback for a thread of the server.
    pub(crate) fn take(&mut self) -> Option<Work> {
        let low = self.order.low();
        let work = self.queue.take(low)?;
        if let Task::Apply(apply) = &work.task {
            self.counters.entered(apply.gtid.seqno, low);
        }
        Some(work)
    }

    /// Nothing is handed out for now.
    pub(crate) fn hold_still(&mut self) {
        self.queue.hold();
    }

    /// The callbacks that have become ready.
    pub(crate) fn announce(&mut self) -> Announced {
        self.queue.announce(self.order.low())
    }

    /// A callback has returned; None: it is of a connection that is over.
    pub(crate) fn done(&mut self, work: WorkId) -> Option<Running> {
        self.queue.done(work)
    }

    /// A write-set is applied: it takes the steps that are still open.
    pub(crate) fn applied(&mut self, seqno: Seqno) {
        if self.order.is_inside(seqno) {
            self.order.leave(seqno);
        }
        if !self.order.has_passed(seqno) {
            self.order.pass(seqno);
        }
        self.release_seqno(seqno);
    }

    /// A primary view was shown.
    pub(crate) fn view_shown(&mut self, seqno: Seqno) {
        if !self.queue.shows_next(seqno) {
            self.shown_low = None;
        }
        if seqno > self.order.low() {
            self.order.pass(seqno);
            self.release_seqno(seqno);
        }
    }

    /// The server has sent its state, or could not begin to.
    pub(crate) fn end_donation(&mut self) {
        self.queue.end_donation();
    }

    // --- callbacks that are not made any more

    /// The server disconnects: it could neither send nor receive its state.
    pub(crate) fn server_disconnects(&mut self) {
        let is_transfer = |task: &Task| matches!(task, Task::SstRequest | Task::Donate { .. });
        for task in self.queue.remove(is_transfer) {
            if matches!(task, Task::Donate { .. }) {
                self.order.unhold_last();
            }
        }
    }

    /// The group's log begins anew: a donation that was not begun is off.
    pub(crate) fn log_begins_anew(&mut self) {
        self.order.unhold_all();
        self.queue
            .remove(|task| matches!(task, Task::Synced | Task::Donate { .. }));
    }

    /// The group lets go: what is certified is still applied.
    pub(crate) fn group_lets_go(&mut self) {
        self.order.unhold_all();
        self.queue
            .remove(|task| matches!(task, Task::SstRequest | Task::Donate { .. } | Task::Synced));
    }

    /// The database has diverged: nothing more is applied, and nobody is to be given it.
    pub(crate) fn diverge(&mut self) {
        let skipped = self.queue.remove(|task| match task {
            Task::Apply(_) | Task::Donate { .. } => true,
            Task::View(view) => view.primary,
            _ => false,
        });
        for task in &skipped {
            self.skip(task);
        }
    }
}

#[cfg(test)]
mod tests;
