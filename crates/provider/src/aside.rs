//! A thread that runs jobs without the node's lock, and hands their results to the reactor.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use trireme_transport::Waker;

use crate::node::Node;
use crate::threads::ThreadError;
use crate::worker::Worker;

/// Handle on the thread; stops and joins it when dropped.
pub struct Aside<J, D> {
    worker: Worker<J>,
    done: Receiver<D>,
}

impl<J: Send + 'static, D: Send + 'static> Aside<J, D> {
    /// Starts a thread of this name, which wakes this reactor after each job. `begin` runs in it once.
    pub fn start(
        node: &Arc<Node>,
        reactor: Waker,
        name: &'static str,
        begin: fn(),
        run: fn(J) -> D,
    ) -> Result<Aside<J, D>, ThreadError> {
        let (sender, done) = channel();
        let worker = Worker::start(node, name, move || {
            begin();
            move |_: &Node, job: J| {
                // After the connection was closed, the receiver is gone.
                let _ = sender.send(run(job));
                reactor.wake();
                None
            }
        })?;
        Ok(Aside { worker, done })
    }

    /// Hands a job to the thread, which runs the jobs in turn. The engine bounds their number.
    pub fn hand(&self, job: J) {
        self.worker.hand(job);
    }

    /// Returns the result of a job, if one has ended.
    pub fn next_done(&self) -> Option<D> {
        self.done.try_recv().ok()
    }
}
