//! The executor: ordered write-sets wait for the server's threads, commit in the order of their seqnos, and are
//! released.
//!
//! It owns the commit order, the apply queue, this node's transactions and total-order actions, and the history in
//! which it counts seqnos. In: ordered write-sets and calls of the server's threads. Out: answers, and the work that is
//! ready or has ended. Every seqno passes commit order once, then it is released once. The history and the order
//! outlast a connection.

mod apply_queue;
mod conflicts;
mod counters;
mod isolation;
mod lag;
mod order;
mod own_actions;
mod own_transactions;
mod transactions;

use trireme_certification::Seqno;
use trireme_group::{Delivery, Position, Uuid};

use crate::context::Context;
use crate::gtid::Gtid;
use crate::payload::{Memory, Payload};
use crate::work::{Task, View, Work, WorkId};
use apply_queue::ApplyQueue;
use conflicts::Conflicts;
use isolation::Isolations;
use lag::Lag;
use order::Order;
use transactions::Transactions;

pub(crate) use apply_queue::{Announced, Running};
pub use conflicts::{ConflictCounts, ConflictKind, Loss, Winner};
pub(crate) use counters::ExecutorCounters;
pub(crate) use own_transactions::Entry;
pub(crate) use transactions::{Ordered, ReplayCause};

pub(crate) struct Executor {
    order: Order,
    /// The history that `order` counts in; nil before the database has any of it.
    history: Uuid,
    /// `last_committed` for the server while it is shown a primary view without a place in the order.
    shown_low: Option<Seqno>,
    queue: ApplyQueue,
    transactions: Transactions,
    isolations: Isolations,
    conflicts: Conflicts,
    counters: ExecutorCounters,
    lag: Lag,
    /// False if the server gets no callbacks with a seqno (any more): their places in the order are used up.
    applies: bool,
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
            lag: Lag::default(),
            applies: true,
        }
    }

    /// Starts over for a new connection: the order and its history stay. `applies`: false for an arbitrator.
    pub(crate) fn start_over(&mut self, applies: bool) {
        self.applies = applies;
        self.queue.start_over();
        self.transactions.clear();
        self.isolations.clear();
        self.lag.start_over();
    }

    /// Sets the database's position to this seqno of this history.
    pub(crate) fn begin_at(&mut self, history: Uuid, seqno: Seqno) {
        self.history = history;
        self.order = Order::new(seqno);
        self.queue.recount();
    }

    /// Forgets the history: the database does not count, and an SST must replace it.
    pub(crate) fn forget_history(&mut self) {
        self.history = Uuid::NIL;
    }

    /// Returns the history of the database; nil before the database has any of it.
    pub(crate) fn history(&self) -> Uuid {
        self.history
    }

    pub(crate) fn gtid_of(&self, seqno: Seqno) -> Gtid {
        Gtid {
            uuid: self.history,
            seqno,
        }
    }

    /// Returns the GTID of a seqno that the group has ordered.
    pub(crate) fn ordered_gtid(&self, context: &Context, seqno: Seqno) -> Gtid {
        Gtid {
            uuid: context.history().unwrap_or(self.history),
            seqno,
        }
    }

    /// Returns the position for last_committed_id(): nil and -1 before the first view.
    pub(crate) fn last_committed(&self) -> Gtid {
        match self.history.is_nil() {
            true => Gtid::UNDEFINED,
            false => self.gtid_of(self.shown_low.unwrap_or(self.order.low())),
        }
    }

    pub(crate) fn counters(&self) -> &ExecutorCounters {
        &self.counters
    }

    /// Resets the counters (FLUSH STATUS).
    pub(crate) fn reset_counters(&mut self) {
        self.counters = ExecutorCounters::default();
    }

    // --- the order

    /// Returns the low-water mark: everything up to it is released.
    pub(crate) fn low(&self) -> Seqno {
        self.order.low()
    }

    /// Returns the last seqno of the order.
    pub(crate) fn top(&self) -> Seqno {
        self.order.top()
    }

    /// Returns true if every seqno of the order is released.
    pub(crate) fn is_drained(&self) -> bool {
        self.order.is_drained()
    }

    /// Returns the next seqno to pass: everything before it has left commit order.
    pub(crate) fn next_to_pass(&self) -> Seqno {
        self.order.next_to_pass()
    }

    /// Returns true if the seqno has left commit order, or will pass by itself.
    pub(crate) fn has_passed(&self, seqno: Seqno) -> bool {
        self.order.has_passed(seqno)
    }

    /// Returns true if this connection has executed the seqno, or it will pass by itself.
    pub(crate) fn has_passed_here(&self, seqno: Seqno) -> bool {
        self.order.has_passed_here(seqno)
    }

    /// Lets this seqno leave commit order.
    pub(crate) fn leave(&mut self, seqno: Seqno) {
        self.order.leave(seqno);
    }

    /// Notes that the group has ordered this seqno now.
    pub(crate) fn note_ordered(&mut self, seqno: Seqno, now_ms: u64) {
        self.lag.ordered(seqno, now_ms, self.order.low());
    }

    /// Returns the age of the oldest seqno up to `top` that is ordered and not committed here.
    pub(crate) fn lag_ms(&self, now_ms: u64, top: Seqno) -> u64 {
        self.lag.age_ms(now_ms, self.order.low(), top)
    }

    /// Holds a donor's state still: nothing above `seqno` commits until [`Self::unhold`].
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

    // --- the apply queue, for reading

    /// Returns the number of write-sets that wait.
    pub(crate) fn waiting_applies(&self) -> usize {
        self.queue.applies()
    }

    /// Returns the callbacks that wait or run.
    pub(crate) fn queue(&self) -> &ApplyQueue {
        &self.queue
    }

    /// Returns true if the next callback is the view that ends the server's donor state, and no other callback is
    /// running.
    pub(crate) fn ends_donor_next(&self) -> bool {
        self.queue.ends_donor_next(self.order.low())
    }

    // --- callbacks come in

    /// Puts a callback into the queue, unless an SST has brought its effects already. A callback with a seqno takes its
    /// place in the order.
    pub(crate) fn enqueue(&mut self, task: Task, seqno: Option<Seqno>, payload: Payload) {
        if let Some(seqno) = seqno {
            if seqno <= self.order.top() {
                return;
            }
            self.order.add(seqno);
        }
        if !self.applies {
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

    /// Queues a callback without a place in the order, behind everything that has come.
    pub(crate) fn push_last(&mut self, task: Task) {
        self.queue.push(task, self.order.top(), Payload::None);
    }

    /// Queues a callback without a place in the order, which does not wait for earlier seqnos to be released.
    pub(crate) fn push_at_once(&mut self, task: Task) {
        self.queue.push(task, Seqno::MIN, Payload::None);
    }

    /// Queues views that show the server its database's position, before the first missing entry. They have no place in
    /// the order; `last_committed` is below them meanwhile.
    pub(crate) fn show_first(&mut self, at: Seqno, views: impl IntoIterator<Item = View>) {
        self.shown_low = Some(at - 1);
        for view in views {
            self.queue.push(Task::View(view), at, Payload::None);
        }
    }

    /// Takes in payloads that were read back; returns their number.
    pub(crate) fn restore(&mut self, found: Vec<(Position, Delivery)>, memory: &Memory) -> usize {
        self.queue.restore(found, memory)
    }

    /// Uses up the place in the order of a callback that the server does not get.
    fn skip(&mut self, task: &Task) {
        let seqno = match task {
            Task::Apply(apply) => apply.gtid.seqno,
            Task::View(view) if view.primary => view.gtid.seqno,
            _ => return,
        };
        if seqno <= self.order.low() {
            // The view at the start of an IST has no place of its own ([`Self::show_first`]).
            self.shown_low = None;
            return;
        }
        self.order.pass(seqno);
        self.release_seqno(seqno);
    }

    // --- callbacks go out

    /// Takes the next callback for a thread of the server.
    pub(crate) fn take(&mut self) -> Option<Work> {
        let low = self.order.low();
        let work = self.queue.take(low)?;
        match &work.task {
            Task::Apply(apply) => self.counters.entered(apply.gtid.seqno, low),
            // A primary view without a place in the order: its server expects to be just before it.
            Task::View(view) if view.primary && view.gtid.seqno <= low => {
                self.shown_low = Some(view.gtid.seqno - 1);
            }
            _ => {}
        }
        Some(work)
    }

    /// Hands out nothing for now.
    pub(crate) fn hold_still(&mut self) {
        self.queue.hold();
    }

    /// Announces the callbacks that have become ready.
    pub(crate) fn announce(&mut self) -> Announced {
        self.queue.announce(self.order.low())
    }

    /// Takes in the end of a callback; None: it is of an earlier connection.
    pub(crate) fn done(&mut self, work: WorkId) -> Option<Running> {
        self.queue.done(work)
    }

    /// Notes that a write-set is applied, and takes its open steps.
    pub(crate) fn applied(&mut self, seqno: Seqno) {
        if self.order.is_inside(seqno) {
            self.order.leave(seqno);
        }
        if !self.order.has_passed(seqno) {
            self.order.pass(seqno);
        }
        self.release_seqno(seqno);
    }

    /// Notes that a primary view was shown.
    pub(crate) fn view_shown(&mut self, seqno: Seqno) {
        if !self.queue.shows_next(seqno) {
            self.shown_low = None;
        }
        if seqno > self.order.low() {
            self.order.pass(seqno);
            self.release_seqno(seqno);
        }
    }

    /// Notes that the server has sent its state, or could not begin to.
    pub(crate) fn end_donation(&mut self) {
        self.queue.end_donation();
    }

    // --- callbacks that are dropped

    /// Drops the transfer callbacks of a server that disconnects: it could neither send nor receive its state.
    pub(crate) fn server_disconnects(&mut self) {
        let is_transfer = |task: &Task| matches!(task, Task::SstRequest | Task::Donate { .. });
        for task in self.queue.remove(is_transfer) {
            if matches!(task, Task::Donate { bypass: false, .. }) {
                self.order.unhold_last();
            }
        }
    }

    /// Drops a donation that was not begun, because the group's log begins anew.
    pub(crate) fn log_begins_anew(&mut self) {
        self.order.unhold_all();
        self.queue
            .remove(|task| matches!(task, Task::Synced | Task::Donate { .. }));
    }

    /// Drops callbacks because the group lets the node go: certified write-sets are still applied.
    pub(crate) fn group_lets_go(&mut self) {
        self.order.unhold_all();
        self.queue
            .remove(|task| matches!(task, Task::SstRequest | Task::Donate { .. } | Task::Synced));
    }

    /// Drops callbacks because the database has diverged: nothing more is applied, and no other node may get this
    /// database.
    pub(crate) fn diverge(&mut self) {
        self.applies = false;
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
