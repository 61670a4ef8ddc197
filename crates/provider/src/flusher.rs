//! The thread that flushes the log (`repl.durability=disk`), without the node's lock: others commit meanwhile,
//! and what they append shares the next flush.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use trireme_log::FlushJob;

use crate::node::Node;
use crate::reactor::{guard, with_signals_blocked};

/// Handle on the thread; stops and joins it when dropped.
pub struct Flusher {
    jobs: Option<Sender<FlushJob>>,
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    /// Starts the thread.
    pub fn start(node: &Arc<Node>) -> std::io::Result<Flusher> {
        let (jobs, waiting) = channel();
        let node = Arc::downgrade(node);
        let builder = std::thread::Builder::new().name("trireme-flush".into());
        let thread =
            with_signals_blocked(|| builder.spawn(move || guard(&node, || run(&node, &waiting))))?;
        Ok(Flusher {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Hands a flush to the thread: the engine has one under way at a time.
    pub fn flush(&self, job: FlushJob) {
        if let Some(jobs) = &self.jobs {
            // A thread that has panicked has ended the process.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for Flusher {
    /// Not under the node's lock: the thread may be waiting for it.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(node: &Weak<Node>, jobs: &Receiver<FlushJob>) {
    while let Ok(job) = jobs.recv() {
        let done = job.run();
        let Some(node) = node.upgrade() else { return };
        node.with(|core| core.flushed(done));
    }
}
