//! A thread that does disk jobs without the node's lock.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use crate::node::Node;
use crate::threads::{self, ThreadError};

/// Handle on the thread; stops and joins it when dropped.
pub struct Worker<J> {
    jobs: Option<Sender<J>>,
    thread: Option<JoinHandle<()>>,
}

impl<J: Send + 'static> Worker<J> {
    /// Starts a thread of this name. The thread calls `begin` once, and then the result for each job; a job may return
    /// a next one.
    pub fn start<W: FnMut(&Node, J) -> Option<J>>(
        node: &Arc<Node>,
        name: &'static str,
        begin: impl FnOnce() -> W + Send + 'static,
    ) -> Result<Worker<J>, ThreadError> {
        let (jobs, waiting) = channel();
        let thread = threads::start(node, name, move |node| run(node, begin(), &waiting))?;
        Ok(Worker {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Hands a job to the thread. The engine limits their number.
    pub fn hand(&self, job: J) {
        if let Some(jobs) = &self.jobs {
            // Cannot fail: a panic of the thread ends the process.
            let _ = jobs.send(job);
        }
    }
}

impl<J> Drop for Worker<J> {
    /// Do not drop it under the node's lock: the thread may be waiting for the lock.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run<J>(node: &Weak<Node>, mut work: impl FnMut(&Node, J) -> Option<J>, jobs: &Receiver<J>) {
    while let Ok(job) = jobs.recv() {
        let Some(node) = node.upgrade() else { return };
        let mut due = Some(job);
        while let Some(job) = due {
            due = work(&node, job);
        }
    }
}
