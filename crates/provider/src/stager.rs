//! The thread that writes large payloads into the log's files while they come in. The group requests the next pieces as
//! fast as this thread writes. It yields to all other threads: on a busy machine a large write-set takes its time, and
//! small commits hardly wait for it (measured, three nodes on two processors). It never holds the node's lock: other
//! threads would wait for a thread that the scheduler does not run.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use trireme_engine::{StageDone, StageJob};
use trireme_transport::Waker;

use crate::node::Node;
use crate::worker::Worker;

/// Its niceness, the highest: where both want the processor, it gets a sixtieth of a server thread's share.
const NICE: i32 = 19;

/// Handle on the thread.
pub struct Stager {
    worker: Worker<StageJob>,
    done: Receiver<StageDone>,
}

impl Stager {
    /// Starts the thread, which wakes this reactor.
    pub fn start(node: &Arc<Node>, reactor: Waker) -> std::io::Result<Stager> {
        let (sender, done) = channel();
        let worker = Worker::start(node, "trireme-stage", move || {
            yield_to_all();
            move |_: &Node, job: StageJob| {
                // After the connection was closed, the receiver is gone.
                let _ = sender.send(job.run());
                reactor.wake();
                None
            }
        })?;
        Ok(Stager { worker, done })
    }

    /// Hands a job to the thread, which does the jobs of all payloads in turn.
    pub fn hand(&self, job: StageJob) {
        self.worker.hand(job);
    }

    /// Returns the result of a job, if one has ended.
    pub fn next_done(&self) -> Option<StageDone> {
        self.done.try_recv().ok()
    }
}

fn yield_to_all() {
    // SAFETY: no memory is involved; 0 is the calling thread. Where it fails the thread is like the others.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
}
