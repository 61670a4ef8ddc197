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
use crate::threads::{self, ThreadError};

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
    /// Starts the thread.
    pub fn start(node: &Arc<Node>, poller: Poller, waker: Waker) -> Result<Reactor, ThreadError> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let body = move |node: &Weak<Node>| run(node, poller, &stopped);
        let thread = threads::start(node, "trireme-net", body)?;
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

fn run(node: &Weak<Node>, poller: Poller, stop: &AtomicBool) {
    let mut poller = Some(poller);
    let mut ready = Ready::default();
    let mut idle = Duration::ZERO;
    let mut flush = OwnFlush::default();
    let mut reminder = Reminder::default();
    while !stop.load(Ordering::Acquire) {
        let timeout = match flush.job {
            Some(_) => Duration::ZERO,
            None => idle,
        };
        let waited = match &mut poller {
            Some(poller) => poller.wait(Some(timeout), &mut ready),
            None => {
                std::thread::sleep(timeout);
                Ok(())
            }
        };
        if let Err(error) = waited {
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
        let (idle_ms, cut_off, closed, lacks_others) = node.with(|core| {
            core.heed_signal();
            core.react(&mut ready);
            core.hear_stager();
            core.hear_reader();
            core.pump();
            core.watch_leader();
            flush.job = core.take_quick_flush(flush.job.take());
            let (cut_off, closed) = (core.is_cut_off(), core.progress.closed);
            let lacks_others = !node.server.runs() && core.lacks_others();
            (core.idle_ms(), cut_off, closed, lacks_others)
        });
        if lacks_others && termination::is_wanted() {
            (node.logger).info("SIGTERM: ending while the others are not there yet");
            termination::let_it_after(termination::CLOSE_TIMEOUT, || {
                node.with(|core| core.engine.drop_link());
            });
        }
        if cut_off {
            poller = None; // this closes the port, so the others know at once
            if closed {
                return;
            }
            // The server still applies what is certified here: the replicator needs its clock until the final view.
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

#[cfg(test)]
pub(crate) mod tests {
    use std::net::{SocketAddr, TcpStream};
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::time::Instant;

    use trireme_engine::Start;
    use trireme_group::Uuid;
    use trireme_log::Durability;
    use trireme_node::setup;

    use super::*;
    use crate::border::tests::new_node;
    use crate::core::Core;
    use crate::outlet::tests::line;
    use crate::termination::tests::{is_child, run_again, terminate};

    /// The data directory for the process that a test below starts.
    const DIR: &str = "TRIREME_TEST_DIR_OF_A_WAITING_NODE";

    fn wait_until(what: &str, fulfilled: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_secs(10);
        while !fulfilled() {
            assert!(Instant::now() < until, "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn wait_until_closed(address: SocketAddr) {
        wait_until("the port is closed", || {
            TcpStream::connect(address).is_err()
        });
    }

    /// A node with a connection and its reactor, and the address at which it listens.
    pub fn connected(dir: &Path) -> (Arc<Node>, Reactor, SocketAddr) {
        let node = new_node(dir);
        let (line, poller, address) = line(dir);
        let waker = line.mesh.waker();
        node.with(|core| core.line = Some(line));
        let reactor = Reactor::start(&node, poller, waker).unwrap();
        (node, reactor, address)
    }

    /// Otherwise nothing would try again what the replicator puts off, and its server would never get its final view.
    #[test]
    fn a_node_that_is_cut_off_has_a_clock_until_it_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let (node, reactor, address) = connected(dir.path());
        let ends = || reactor.thread.as_ref().unwrap().is_finished();
        TcpStream::connect(address).expect("it listens");
        node.with(|core| core.line.as_mut().unwrap().mesh.abandon());
        wait_until_closed(address);
        std::thread::sleep(Duration::from_millis(300));
        assert!(!ends());
        node.with(|core| core.progress.closed = true);
        wait_until("it ends", ends);
    }

    /// Connects the engine of a node that restarts in `memory` mode, or is the `first` of its cluster.
    fn begin(node: &Node, first: bool) {
        let options = node.options.lock().unwrap().clone();
        let votes = setup::open_votes(&options).unwrap();
        let me = setup::this_member(&options, &votes).unwrap();
        let mut start = Start {
            bootstrap: first.then_some(Uuid([7; 16])),
            ..setup::start(&options, &votes, me)
        };
        start.log.durability = Durability::Memory;
        node.with(|core| core.engine.connect(now_ms(), start))
            .unwrap();
    }

    /// Otherwise a restart of a machine whose server waited would make its node an amnesiac, although it had
    /// acknowledged nothing since a clean stop.
    #[test]
    fn sigterm_closes_the_log_of_a_server_that_waits() {
        if is_child() {
            let dir = std::env::var(DIR).unwrap();
            let node = new_node(Path::new(&dir));
            begin(&node, true);
            node.with(|core| core.engine.drop_link());
            terminate();
            let (line, poller, _) = line(Path::new(&dir));
            let waker = line.mesh.waker();
            node.with(|core| core.line = Some(line));
            begin(&node, false);
            assert!(node.peek(Core::lacks_others));
            let _reactor = Reactor::start(&node, poller, waker).unwrap();
            wait_until("it ends", || false);
        }
        let dir = tempfile::tempdir().unwrap();
        let env = format!("{DIR}={}", dir.path().display());
        let this_test = "reactor::tests::sigterm_closes_the_log_of_a_server_that_waits";
        let status = run_again(&["env", &env], this_test).unwrap();
        assert_eq!(status.signal(), Some(libc::SIGTERM), "{status}");
        let node = new_node(dir.path());
        begin(&node, false);
        let is_amnesiac = |core: &Core| core.engine.link().unwrap().group.is_amnesiac();
        assert!(!node.peek(is_amnesiac));
    }
}
