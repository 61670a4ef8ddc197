//! The thread that writes large payloads into the log's files while they come in. It yields to everything else: the next
//! pieces are asked for as fast as it writes, so on a busy machine a large write-set takes its time, and small commits do not
//! wait for it (measured, three nodes on two processors).

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use trireme_engine::StageJob;
use trireme_node::now_ms;

use crate::node::Node;
use crate::reactor::{guard, with_signals_blocked};

/// Its niceness: a tenth of what a server's thread gets, where both want the processor.
const NICE: i32 = 19;

/// Handle on the thread; stops and joins it when dropped.
pub struct Stager {
    jobs: Option<Sender<StageJob>>,
    thread: Option<JoinHandle<()>>,
}

impl Stager {
    /// Starts the thread.
    pub fn start(node: &Arc<Node>) -> std::io::Result<Stager> {
        let (jobs, waiting) = channel();
        let node = Arc::downgrade(node);
        let builder = std::thread::Builder::new().name("trireme-stage".into());
        let thread =
            with_signals_blocked(|| builder.spawn(move || guard(&node, || run(&node, &waiting))))?;
        Ok(Stager {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Hands a job to the thread: one for each payload that comes in, at a time.
    pub fn stage(&self, job: StageJob) {
        if let Some(jobs) = &self.jobs {
            // A thread that has panicked has ended the process.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for Stager {
    /// Not under the node's lock: the thread may be waiting for it.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(node: &Weak<Node>, jobs: &Receiver<StageJob>) {
    // SAFETY: no memory is involved; 0 is the calling thread. Where it fails the thread is like the others.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
    while let Ok(job) = jobs.recv() {
        let Some(node) = node.upgrade() else { return };
        let mut due = Some(job);
        while let Some(job) = due {
            let done = job.run();
            due = node.with(|core| core.engine.staged(now_ms(), done));
        }
    }
}
