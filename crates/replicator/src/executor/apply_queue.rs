//! The apply queue: callbacks for recv() threads, handed out strictly in order. It owns the waiting and the running
//! callbacks. A write-set is ready when its dependencies are released; every other callback runs alone.

use std::collections::{BTreeMap, VecDeque};

use trireme_certification::Seqno;
use trireme_group::{Delivery, Position};
use trireme_mutants::{Mutant, planted};

use crate::flags;
use crate::gtid::Gtid;
use crate::message::Message;
use crate::payload::{Memory, Missing, Payload};
use crate::work::{Task, View, Work, WorkId};

/// Maximum of ready callbacks that are announced; each finished one announces more.
const MAX_ANNOUNCED: usize = 64;

/// The kind of a running task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Running {
    Apply {
        seqno: Seqno,
        isolation: bool,
    },
    View(View),
    /// Connected or Synced.
    Other,
    SstRequest,
    Donate {
        /// True if the executor holds back what is above the state that is sent.
        holds: bool,
    },
}

struct Queued {
    task: Task,
    /// For every task but Apply: it runs when everything up to this seqno is released.
    after: Seqno,
    /// For an Apply in isolation: grastate.dat was marked unsafe.
    marked: bool,
    payload: Payload,
}

impl Queued {
    /// Returns true for the view that tells the server that it is not in the primary component.
    fn is_non_primary(&self) -> bool {
        matches!(&self.task, Task::View(view) if !view.primary)
    }

    /// Takes its payload from an entry of the log; returns false if that is another entry.
    fn takes(&mut self, delivery: &Delivery, bytes: usize) -> bool {
        let (Task::Apply(apply), Delivery::Submission { id, payload }) = (&mut self.task, delivery)
        else {
            return false;
        };
        let Ok(Message::WriteSet(write_set)) = Message::decode(payload) else {
            return false;
        };
        let is_it = id.incarnation == apply.source
            && (write_set.trx, write_set.conn) == (apply.trx, apply.conn)
            && payload.len() == bytes;
        if !is_it && !planted(Mutant::AnotherReadBack) {
            return false;
        }
        apply.data = write_set.data;
        true
    }
}

/// The queue. Callbacks are handed out strictly in order. Otherwise a later one could take the last thread, and wait in
/// commit order for an earlier one that has no thread.
#[derive(Default)]
pub(crate) struct ApplyQueue {
    queue: VecDeque<Queued>,
    /// Number of callbacks at the front with their payload; the next one's is only in the log.
    here: usize,
    /// Position of the last payload that is only in the log, if any is.
    last_in_log: Position,
    running: BTreeMap<WorkId, Running>,
    next_id: WorkId,
    /// Number of write-sets at the front that are known to be ready: they stay so.
    ready: usize,
    /// Number of ready tasks that the server's threads were told of.
    announced: usize,
    /// True if it was noted that the server gets write-sets.
    applying_noted: bool,
    /// Number of Apply tasks in the queue.
    applies: usize,
    /// The server was asked to send its state, and has not reported the end yet. Its script may be running, even one of
    /// an earlier connection.
    donates: bool,
    /// The server takes itself for a donor: until it reports that it has sent, or loses the primary component.
    is_donor: bool,
    is_told_of_loss: bool,
}

impl ApplyQueue {
    pub(crate) fn push(&mut self, task: Task, after: Seqno, payload: Payload) {
        match &payload {
            Payload::InLog { position, .. } => self.last_in_log = *position,
            _ => self.here += usize::from(self.here == self.queue.len()),
        }
        match &task {
            Task::Apply(_) => self.applies += 1,
            Task::View(view) => self.is_told_of_loss = !view.primary,
            _ => {}
        }
        self.queue.push_back(Queued {
            task,
            after,
            marked: false,
            payload,
        });
    }

    /// Returns the next payload to be read back.
    pub(crate) fn missing(&self) -> Option<Missing> {
        let Payload::InLog { position, bytes } = self.queue.get(self.here)?.payload else {
            return None; // `here` is where the first of them is
        };
        Some(Missing {
            first: position,
            last: self.last_in_log,
            bytes,
            is_next: self.here == 0,
        })
    }

    /// Takes in entries that were read back, from the first missing one on. Returns their number: 0 if that one is not
    /// among them.
    pub(crate) fn restore(&mut self, found: Vec<(Position, Delivery)>, memory: &Memory) -> usize {
        let mut found = found.into_iter().peekable();
        let mut restored = 0;
        while let Some(missing) = self.missing() {
            while found.next_if(|(at, _)| *at < missing.first).is_some() {}
            let Some((_, delivery)) = found.next_if(|(at, _)| *at == missing.first) else {
                break;
            };
            let Some(queued) = self.queue.get_mut(self.here) else {
                break; // `missing` has seen it
            };
            if !queued.takes(&delivery, missing.bytes) {
                break;
            }
            queued.payload = Payload::here(memory, missing.bytes);
            self.count_here();
            restored += 1;
        }
        restored
    }

    fn count_here(&mut self) {
        let waiting = self.queue.iter().skip(self.here);
        let is_here = |queued: &&Queued| !queued.payload.is_in_log();
        self.here += waiting.take_while(is_here).count();
    }

    /// Returns the number of write-sets that wait.
    pub(crate) fn applies(&self) -> usize {
        self.applies
    }

    /// Starts over for a new connection. Ids go on: an applier stuck in a callback of the last connection may still
    /// report, and must not be taken for one of this connection.
    pub(crate) fn start_over(&mut self) {
        *self = ApplyQueue {
            next_id: self.next_id,
            donates: self.donates,
            ..ApplyQueue::default()
        };
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.running.is_empty()
    }

    /// Drops the tasks that were not started and for which `unwanted` returns true; returns them.
    pub(crate) fn remove(&mut self, unwanted: impl Fn(&Task) -> bool) -> Vec<Task> {
        let mut removed = Vec::new();
        for queued in std::mem::take(&mut self.queue) {
            if unwanted(&queued.task) {
                removed.push(queued.task)
            } else {
                self.queue.push_back(queued)
            }
        }
        self.here = 0;
        self.count_here();
        self.recount();
        self.applies = self
            .queue
            .iter()
            .filter(|q| matches!(q.task, Task::Apply(_)))
            .count();
        removed
    }

    /// Forgets which tasks are ready; [`Self::announce`] checks them again.
    pub(crate) fn recount(&mut self) {
        self.ready = 0;
    }

    /// Returns true if the task at the queue's front may run.
    fn is_ready(&self, queued: &Queued, low: Seqno) -> bool {
        if queued.payload.is_in_log() {
            return false;
        }
        match &queued.task {
            Task::Apply(apply) => {
                let alone = apply.flags & flags::ISOLATION != 0;
                let follows = apply.depends_on <= low || planted(Mutant::DependsOnNotHeeded);
                follows
                    && self.applying_noted
                    && (!alone || queued.marked)
                    && (!self.runs_alone() || planted(Mutant::ViewIsNoBarrier))
            }
            _ => queued.after <= low && self.running.is_empty(),
        }
    }

    fn runs_alone(&self) -> bool {
        self.running
            .values()
            .any(|r| !matches!(r, Running::Apply { .. }))
    }

    pub(crate) fn take(&mut self, low: Seqno) -> Option<Work> {
        let front = self.queue.front()?;
        if !self.is_ready(front, low) {
            return None;
        }
        let task = self.queue.pop_front()?.task;
        self.here -= 1; // it was ready
        match &task {
            Task::Donate { .. } => (self.donates, self.is_donor) = (true, true),
            Task::View(view) if !view.primary => self.is_donor = false,
            _ => {}
        }
        self.announced = self.announced.saturating_sub(1);
        self.ready = self.ready.saturating_sub(1);
        let running = match &task {
            Task::Apply(apply) => {
                self.applies -= 1;
                Running::Apply {
                    seqno: apply.gtid.seqno,
                    isolation: apply.flags & flags::ISOLATION != 0,
                }
            }
            Task::View(view) => Running::View(view.clone()),
            Task::SstRequest => Running::SstRequest,
            Task::Donate { bypass, .. } => Running::Donate { holds: !bypass },
            Task::Connected(_) | Task::Synced | Task::Exit { .. } => Running::Other,
        };
        self.next_id += 1;
        self.running.insert(self.next_id, running);
        Some(Work {
            id: self.next_id,
            task,
        })
    }

    /// Returns true if the server was asked to send its state, and has not reported the end yet.
    pub(crate) fn donates(&self) -> bool {
        self.donates
    }

    /// Notes that the server has sent its state, or could not begin to.
    pub(crate) fn end_donation(&mut self) {
        (self.donates, self.is_donor) = (false, false);
    }

    /// Returns true if the server takes itself for a donor, and its donate callback has returned.
    pub(crate) fn is_known_donor(&self) -> bool {
        let is_asked = |running: &Running| matches!(running, Running::Donate { .. });
        self.is_donor && !self.running.values().any(is_asked)
    }

    /// Returns true if the server sends its state, or will be asked to.
    pub(crate) fn will_donate(&self) -> bool {
        let is_one = |queued: &Queued| matches!(queued.task, Task::Donate { .. });
        self.donates || self.queue.iter().any(is_one)
    }

    /// Returns true if the next task is the view that ends the server's donor state, and no other task is running.
    pub(crate) fn ends_donor_next(&self, low: Seqno) -> bool {
        let next = self.queue.front().filter(|next| next.is_non_primary());
        self.is_donor && next.is_some_and(|next| self.is_ready(next, low))
    }

    /// Returns true if the server will hear, or now hears, that it is not in the primary component.
    pub(crate) fn shows_non_primary(&self) -> bool {
        let is_one = |running: &Running| matches!(running, Running::View(view) if !view.primary);
        self.queue.iter().any(Queued::is_non_primary) || self.running.values().any(is_one)
    }

    /// Returns true if the last view that was queued in this connection is a non-primary one.
    pub(crate) fn is_told_of_loss(&self) -> bool {
        self.is_told_of_loss
    }

    /// Returns true while a view is being shown.
    pub(crate) fn is_in_view(&self) -> bool {
        let is_one = |running: &Running| matches!(running, Running::View(_));
        self.running.values().any(is_one)
    }

    /// Hands out nothing for now: announced tasks are announced again.
    pub(crate) fn hold(&mut self) {
        self.announced = 0;
    }

    /// Returns true if the next task is a view at this seqno.
    pub(crate) fn shows_next(&self, seqno: Seqno) -> bool {
        let next = self.queue.front().map(|queued| &queued.task);
        matches!(next, Some(Task::View(view)) if view.primary && view.gtid.seqno == seqno)
    }

    /// Returns true if an applier is executing this seqno, and it is a total-order action.
    pub(crate) fn is_action(&self, seqno: Seqno) -> bool {
        let is_it = |running: &Running| matches!(running, Running::Apply { seqno: at, isolation: true } if *at == seqno);
        self.running.values().any(is_it)
    }

    /// Takes in the end of a callback.
    pub(crate) fn done(&mut self, id: WorkId) -> Option<Running> {
        self.running.remove(&id)
    }

    /// Announces the tasks that have become ready.
    pub(crate) fn announce(&mut self, low: Seqno) -> Announced {
        let mut announced = Announced::default();
        if let Some(front) = self.queue.front_mut() {
            if let Task::Apply(apply) = &front.task {
                announced.begins_to_apply = !std::mem::replace(&mut self.applying_noted, true);
                let alone = apply.flags & flags::ISOLATION != 0;
                if alone && !front.marked && apply.depends_on <= low {
                    front.marked = true;
                    announced.action = Some(apply.gtid);
                }
            }
        }
        let ready = self.count_ready(low);
        announced.wake = ready.saturating_sub(self.announced);
        self.announced = ready;
        announced
    }

    /// Returns the number of tasks at the front that are ready, at most [`MAX_ANNOUNCED`]. Behind a task that is no
    /// write-set none is, and that one is no longer ready when a write-set before it runs.
    fn count_ready(&mut self, low: Seqno) -> usize {
        loop {
            let next = self.queue.get(self.ready);
            let next = next.filter(|_| self.ready < MAX_ANNOUNCED);
            match next.filter(|next| self.is_ready(next, low)) {
                Some(next) if matches!(next.task, Task::Apply(_)) => self.ready += 1,
                Some(_) => return self.ready + 1,
                None => return self.ready,
            }
        }
    }
}

/// Result of [`ApplyQueue::announce`]: the coordinator's steps, in this order.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Announced {
    /// The server will get the first write-set of this connection.
    pub begins_to_apply: bool,
    /// This total-order action will begin.
    pub action: Option<Gtid>,
    /// Number of threads to wake.
    pub wake: usize,
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use trireme_group::{Incarnation, Uuid};

    use super::*;
    use crate::work::Apply;

    #[test]
    fn a_report_of_the_last_connection_finishes_nothing_of_this_one() {
        let mut queue = ApplyQueue::default();
        queue.push(Task::Synced, 0, Payload::None);
        let stuck = queue.take(0).expect("it may run").id;
        queue.start_over();
        queue.push(Task::Synced, 0, Payload::None);
        let running = queue.take(0).expect("nothing else runs").id;
        assert_eq!(queue.done(stuck), None);
        assert_eq!(queue.done(running), Some(Running::Other));
    }

    /// Its end must not end the hold of another donation.
    #[test]
    fn a_donation_that_passes_a_position_on_holds_nothing() {
        for bypass in [false, true] {
            let mut queue = ApplyQueue::default();
            let (request, gtid) = (Bytes::new(), Gtid::UNDEFINED);
            let task = Task::Donate {
                request,
                gtid,
                bypass,
            };
            queue.push(task, 0, Payload::None);
            let running = queue.take(0).expect("it may run").id;
            let holds = !bypass;
            assert_eq!(queue.done(running), Some(Running::Donate { holds }));
        }
    }

    fn apply(seqno: Seqno) -> Task {
        let apply = Apply {
            gtid: Gtid {
                uuid: Uuid([7; 16]),
                seqno,
            },
            source: Incarnation(Uuid([1; 16])),
            trx: 1,
            conn: 1,
            flags: flags::TRX_END,
            depends_on: 0,
            data: Bytes::new(),
        };
        Task::Apply(Box::new(apply))
    }

    #[test]
    fn each_ready_task_is_announced_once_and_again_if_it_had_to_wait_once_more() {
        let mut queue = ApplyQueue::default();
        queue.push(apply(1), 0, Payload::None);
        queue.push(Task::Synced, 0, Payload::None);
        assert_eq!(queue.announce(0).wake, 2);
        let first = queue.take(0).expect("it is ready").id;
        assert!(queue.take(0).is_none(), "the write-set runs");
        assert_eq!(queue.announce(0).wake, 0);
        queue.done(first);
        queue.push(apply(2), 0, Payload::None);
        assert_eq!(queue.announce(1).wake, 1, "not what stands behind it");
        let second = queue.take(1).expect("nothing runs").id;
        queue.done(second);
        assert_eq!(queue.announce(1).wake, 1);
        assert_eq!(queue.announce(1).wake, 0);
    }
}
