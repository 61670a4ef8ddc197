//! The shared handle on a node: the lock around the core, and how threads of the server call it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trireme_replicator::{Answer, Event, Ticket, TrxId, Work};
use trireme_wsrep_abi::InitSettings;

use crate::core::Core;
use crate::logging::Logger;
use crate::options::Options;
use crate::reactor::Reactor;
use crate::waiting::wake;

/// One provider instance.
pub struct Node {
    core: Mutex<Core>,
    /// recv() threads wait here for work.
    work: Condvar,
    /// What the server passed to init().
    pub settings: InitSettings,
    pub logger: Logger,
    pub options: Mutex<Options>,
    /// The connection's thread; none while disconnected.
    pub reactor: Mutex<Option<Reactor>>,
    /// recv() threads inside.
    pub appliers: AtomicUsize,
    /// Transactions that have appended something and were not certified yet.
    pub executing: Mutex<HashSet<TrxId>>,
    /// `repl.max_ws_size`.
    pub max_ws_bytes: AtomicU64,
    /// True once the server's storage engines are up.
    pub server_running: std::sync::atomic::AtomicBool,
}

impl Node {
    pub fn new(core: Core, settings: InitSettings, options: Options, logger: Logger) -> Node {
        Node {
            core: Mutex::new(core),
            work: Condvar::new(),
            settings,
            logger,
            options: Mutex::new(options),
            reactor: Mutex::new(None),
            appliers: AtomicUsize::new(0),
            executing: Mutex::new(HashSet::new()),
            max_ws_bytes: AtomicU64::new(i32::MAX as u64),
            server_running: std::sync::atomic::AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        // A panic under the lock ends the process at the border (see border.rs).
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if a thread panicked in the core: nothing can be trusted any more.
    pub fn is_broken(&self) -> bool {
        self.core.is_poisoned()
    }

    /// Reads or changes the core, carries out what follows, and wakes whom it concerns.
    pub fn with<T>(&self, change: impl FnOnce(&mut Core) -> T) -> T {
        let mut core = self.lock();
        let result = change(&mut core);
        core.pump();
        self.release(core);
        result
    }

    /// Reads the core only.
    pub fn peek<T>(&self, read: impl FnOnce(&Core) -> T) -> T {
        read(&self.lock())
    }

    /// Lets go of the lock and wakes the threads whose turn it is.
    fn release(&self, mut core: MutexGuard<'_, Core>) {
        let due = core.waiting.take_due();
        let appliers = std::mem::take(&mut core.appliers_due);
        drop(core);
        wake(due);
        if appliers >= self.appliers.load(Ordering::Relaxed) && appliers > 0 {
            self.work.notify_all();
        } else {
            for _ in 0..appliers {
                self.work.notify_one();
            }
        }
    }

    /// Makes the connection's thread look at its deadlines again.
    pub fn wake_reactor(&self) {
        if let Some(reactor) = self
            .reactor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
        {
            reactor.wake();
        }
    }

    /// Calls the node and waits for its answer.
    pub fn call(&self, event: impl FnOnce(&mut Core, Ticket) -> Event) -> Answer {
        match self.begin(event).1 {
            Ok(answer) => answer,
            Err(slot) => slot.wait(),
        }
    }

    /// Calls the node; None if it has not answered in time, and never will.
    pub fn call_for(
        &self,
        timeout: Duration,
        event: impl FnOnce(&mut Core, Ticket) -> Event,
    ) -> Option<Answer> {
        let (ticket, claimed) = self.begin(event);
        match claimed {
            Ok(answer) => Some(answer),
            Err(slot) => slot.wait_for(timeout).or_else(|| {
                let cancelled = self.with(|core| {
                    let waiting = core.waiting.forget(ticket);
                    if waiting {
                        core.node(Event::CancelTicket { ticket });
                    }
                    waiting
                });
                // Not waiting any more: the answer is being put into the slot right now.
                if cancelled { None } else { Some(slot.wait()) }
            }),
        }
    }

    #[allow(clippy::type_complexity)]
    fn begin(
        &self,
        event: impl FnOnce(&mut Core, Ticket) -> Event,
    ) -> (Ticket, Result<Answer, std::sync::Arc<crate::waiting::Slot>>) {
        let mut core = self.lock();
        let ticket = core.waiting.ticket();
        let event = event(&mut core, ticket);
        core.node(event);
        core.pump();
        let claimed = core.waiting.claim(ticket);
        self.release(core);
        (ticket, claimed)
    }

    /// For recv() threads: reports what was done, and waits for what is to be done next.
    pub fn next_work(&self, done: Option<Event>) -> Work {
        let mut core = self.lock();
        if let Some(event) = done {
            core.node(event);
        }
        core.pump();
        loop {
            if let Some(work) = core.replicator.take_work() {
                core.pump();
                self.release(core);
                return work;
            }
            // Nothing to do: others are woken before this thread sleeps.
            let due = core.waiting.take_due();
            let appliers = std::mem::take(&mut core.appliers_due);
            if !due.is_empty() || appliers > 0 {
                drop(core);
                wake(due);
                for _ in 0..appliers.min(self.appliers.load(Ordering::Relaxed)) {
                    self.work.notify_one();
                }
                core = self.lock();
                continue;
            }
            core = self.work.wait(core).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
