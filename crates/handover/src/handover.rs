//! The lock around a core, and the calls of threads through it.
//!
//! In: events of callers and appliers. Out: answers and work. A thread that changes the core wakes the threads for
//! which the change matters, and it wakes them after it has released the lock.

use std::sync::atomic::Ordering;
use std::time::Duration;

use trireme_mutants::{Mutant, planted};

use crate::core_lock::{Condvar, Mutex, MutexGuard};
use crate::sync::{Arc, AtomicUsize};
use crate::waiting::{Slot, Ticket, Waiting};

/// The state under the lock: the core.
pub trait UnderLock {
    /// An input from a caller or an applier.
    type Event;
    /// The answer to a caller.
    type Answer;
    /// A task for an applier.
    type Work;

    /// Takes in an event.
    fn handle(&mut self, event: Self::Event);
    /// Carries out everything that follows from the events, so that nothing remains to do when the lock is released.
    fn pump(&mut self);
    /// Takes the next task, if it may begin now.
    fn take_work(&mut self) -> Option<Self::Work>;
    /// Returns the number of tasks that have become ready since the last call.
    fn take_appliers_due(&mut self) -> usize;
    /// No caller waits for this ticket any more: the core must not answer it.
    fn cancel(&mut self, ticket: Ticket);
    /// The waiting callers, to whom the core gives answers.
    fn waiting(&mut self) -> &mut Waiting<Self::Answer>;
}

/// The lock around a core, its callers and its appliers.
pub struct Handover<C: UnderLock> {
    shared: Mutex<Shared<C>>,
    /// Idle appliers wait here for work.
    work: Condvar,
    /// Number of appliers between [`Handover::enter`] and [`Handover::exit`] or [`Handover::leave`].
    pub appliers: AtomicUsize,
}

struct Shared<C> {
    core: C,
    /// Number of appliers that wait for work, or are being woken: at most these need a notification.
    sleeping: usize,
}

/// The threads to wake after a change, without the lock.
struct Due<A> {
    answers: Vec<(Arc<Slot<A>>, A)>,
    appliers: usize,
    /// True if `appliers` is the number of all sleeping appliers.
    all: bool,
}

impl<C: UnderLock> Handover<C> {
    /// Puts `core` under a lock.
    pub fn new(core: C) -> Handover<C> {
        Handover {
            shared: Mutex::new(Shared { core, sleeping: 0 }),
            work: Condvar::new(),
            appliers: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared<C>> {
        self.shared.lock().unwrap_or_else(|_| end_broken())
    }

    /// True if a thread panicked in the core: its state may be wrong, and the caller must end the process.
    pub fn is_broken(&self) -> bool {
        self.shared.is_poisoned()
    }

    /// Reads or changes the core, pumps it, and wakes the threads for which the change matters.
    pub fn with<T>(&self, change: impl FnOnce(&mut C) -> T) -> T {
        let mut shared = self.lock();
        let result = change(&mut shared.core);
        shared.core.pump();
        self.release(shared);
        result
    }

    /// Reads the core only.
    pub fn peek<T>(&self, read: impl FnOnce(&C) -> T) -> T {
        read(&self.lock().core)
    }

    /// Releases the lock, then wakes the threads whose turn it is.
    fn release(&self, mut shared: MutexGuard<'_, Shared<C>>) {
        let due = shared.take_due();
        drop(shared);
        self.wake(due);
    }

    fn wake(&self, due: Due<C::Answer>) {
        for (slot, answer) in due.answers {
            slot.fill(answer);
        }
        if due.all {
            self.work.notify_all();
        } else {
            for _ in 0..due.appliers {
                self.work.notify_one();
            }
        }
    }

    /// Calls the node and waits for its answer.
    pub fn call(&self, event: impl FnOnce(&mut C, Ticket) -> C::Event) -> C::Answer {
        match self.begin(event).1 {
            Ok(answer) => answer,
            Err(slot) => slot.wait(),
        }
    }

    /// Calls the node and waits for its answer for at most `timeout`; None if it has not answered, and never will.
    pub fn call_for(
        &self,
        timeout: Duration,
        event: impl FnOnce(&mut C, Ticket) -> C::Event,
    ) -> Option<C::Answer> {
        let (ticket, claimed) = self.begin(event);
        match claimed {
            Ok(answer) => Some(answer),
            Err(slot) => slot.wait_for(timeout).or_else(|| {
                let cancelled = self.with(|core| {
                    let waiting = core.waiting().forget(ticket);
                    if waiting {
                        core.cancel(ticket);
                    }
                    waiting
                });
                // The ticket is no longer waiting: another thread puts the answer into the slot right now.
                let lost = planted(Mutant::AnswerAtTheEndLost);
                if cancelled || lost {
                    None
                } else {
                    Some(slot.wait())
                }
            }),
        }
    }

    /// Hands the event in. Returns the ticket, with the answer or the slot for it.
    #[allow(clippy::type_complexity)]
    fn begin(
        &self,
        event: impl FnOnce(&mut C, Ticket) -> C::Event,
    ) -> (Ticket, Result<C::Answer, Arc<Slot<C::Answer>>>) {
        let mut shared = self.lock();
        let core = &mut shared.core;
        let ticket = core.waiting().ticket();
        let event = event(core, ticket);
        core.handle(event);
        core.pump();
        let claimed = core.waiting().claim(ticket);
        self.release(shared);
        (ticket, claimed)
    }

    /// For appliers: reports the finished task, and waits for the next one.
    pub fn next_work(&self, done: Option<C::Event>) -> C::Work {
        let mut shared = self.lock();
        if let Some(event) = done {
            shared.core.handle(event);
        }
        shared.core.pump();
        loop {
            if let Some(work) = shared.core.take_work() {
                shared.core.pump();
                self.release(shared);
                return work;
            }
            // There is nothing to do: this thread wakes others before it sleeps.
            let due = shared.take_due();
            if due.is_empty() {
                shared.sleeping += 1;
                shared = self.work.wait(shared).unwrap_or_else(|_| end_broken());
                shared.sleeping -= 1;
            } else {
                drop(shared);
                self.wake(due);
                shared = self.lock();
            }
        }
    }

    /// Counts an applier that begins.
    pub fn enter(&self) {
        self.appliers.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts off an applier that ends because the connection is over.
    pub fn exit(&self) {
        self.appliers.fetch_sub(1, Ordering::SeqCst);
    }

    /// An applier reports the finished task and ends. Returns false if it must not end, because it is the last one.
    pub fn leave(&self, done: C::Event) -> bool {
        self.with(|core| {
            core.handle(done);
            let least = usize::from(!planted(Mutant::LastApplierLeaves));
            let one_less = |n: usize| (n > least).then(|| n - 1);
            self.appliers
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
                .is_ok()
        })
    }
}

/// Ends the process: another thread panicked in the core, and the panic has lost actions. To go on could number or
/// acknowledge later write-sets wrongly.
fn end_broken() -> ! {
    std::process::abort()
}

impl<C: UnderLock> Shared<C> {
    fn take_due(&mut self) -> Due<C::Answer> {
        let appliers = self.core.take_appliers_due().min(self.sleeping);
        Due {
            answers: self.core.waiting().take_due(),
            appliers,
            all: appliers > 0 && appliers == self.sleeping,
        }
    }
}

impl<A> Due<A> {
    fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.appliers == 0
    }
}
