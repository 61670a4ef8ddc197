//! The thread of a connection. It waits for sockets and deadlines without the node's lock, then takes the lock, and
//! hands the events in. It does quick flushes itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use trireme_group::Reminder;
use trireme_log::FlushJob;
use trireme_node::{Station, now_ms};
use trireme_transport::{Poller, Ready, Waker};

use crate::node::Node;
use crate::termination;

/// Maximum of turns that a flush waits while the reactor takes in more input. A higher number makes nothing faster
/// (measured: 12).
const TURNS_PUT_OFF: u32 = 3;

/// Handle on the reactor thread; stops and joins it when dropped.
pub struct Reactor {
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Reactor {
    /// Starts the thread. All signals are blocked in it: the server takes them in a thread of its own.
    pub fn start(node: &Arc<Node>, poller: Poller, waker: Waker) -> std::io::Result<Reactor> {
        let stop = Arc::new(AtomicBool::new(false));
        let (node, stopped) = (Arc::downgrade(node), stop.clone());
        let builder = std::thread::Builder::new().name("trireme-net".into());
        let thread = with_signals_blocked(|| {
            builder.spawn(move || guard(&node, || run(&node, poller, &stopped)))
        })?;
        Ok(Reactor {
            stop,
            waker,
            thread: Some(thread),
        })
    }

    /// Makes the thread check its deadlines again.
    pub fn wake(&self) {
        self.waker.wake();
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has ended the process already.
            let _ = thread.join();
        }
    }
}

fn run(node: &Weak<Node>, mut poller: Poller, stop: &AtomicBool) {
    let mut ready = Ready::default();
    let mut idle = Duration::ZERO;
    let mut flush = OwnFlush::default();
    let mut reminder = Reminder::default();
    while !stop.load(Ordering::Acquire) {
        let timeout = match flush.job {
            Some(_) => Duration::ZERO,
            None => idle,
        };
        if let Err(error) = poller.wait(Some(timeout), &mut ready) {
            if let Some(node) = node.upgrade().filter(|_| reminder.is_due(now_ms())) {
                node.logger.error(format!(
                    "waiting for the network failed: {error}; trying again"
                ));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let Some(node) = node.upgrade() else { return };
        if let Some(job) = flush.take_if_time(&ready) {
            flush.job = node.flush(job);
        }
        let (idle_ms, cut_off, waits) = node.with(|core| {
            core.heed_signal();
            core.react(&mut ready);
            core.hear_stager();
            core.hear_reader();
            core.pump();
            core.watch_leader();
            flush.job = core.take_quick_flush(flush.job.take());
            (core.idle_ms(), core.is_cut_off(), core.waits_for_others())
        });
        if waits && !node.server.runs() && termination::is_wanted() {
            (node.logger).info("SIGTERM: ending while the others are not there yet");
            termination::let_it();
        }
        if cut_off {
            return; // the poller's end closes the port, so the others know at once
        }
        idle = Duration::from_millis(idle_ms);
    }
}

/// A flush that the reactor should do itself: where flushes are quick, waking another thread would take longer.
#[derive(Default)]
struct OwnFlush {
    job: Option<FlushJob>,
    turns_put_off: u32,
}

impl OwnFlush {
    /// Returns the flush if it should begin now: input that has come in already should share it.
    fn take_if_time(&mut self, ready: &Ready) -> Option<FlushJob> {
        if !ready.is_empty() && self.turns_put_off < TURNS_PUT_OFF {
            self.turns_put_off += u32::from(self.job.is_some());
            return None;
        }
        self.turns_put_off = 0;
        self.job.take()
    }
}

/// Ends the process after a panic in the ordering code: a node without that code would hang its cluster silently.
pub(crate) fn guard(node: &Weak<Node>, body: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_err() {
        if let Some(node) = node.upgrade() {
            node.logger.error("panic in a thread of the node, aborting (please report the message on standard error)");
        }
        std::process::abort();
    }
}

const FAULTS: [libc::c_int; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
];

/// Starts a thread, by `spawn`, that takes no signal of the process. Signals of the thread's own faults stay open: the
/// server's handler prints the stack.
pub(crate) fn with_signals_blocked<T>(spawn: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are valid; the mask of this thread is put back below.
    unsafe {
        let mut blocked: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut blocked);
        for fault in FAULTS {
            libc::sigdelset(&mut blocked, fault);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &blocked, &mut before);
        let result = spawn();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        result
    }
}
