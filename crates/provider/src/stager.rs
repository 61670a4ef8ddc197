//! The thread that writes large payloads into the log's files while they come in. The group requests the next pieces as
//! fast as this thread writes. It yields to all other threads: on a busy machine a large write-set takes its time, and
//! small commits hardly wait for it (measured, three nodes on two processors). It never holds the node's lock: other
//! threads would wait for a thread that the scheduler does not run.

use std::sync::Arc;

use trireme_engine::{StageDone, StageJob};
use trireme_transport::Waker;

use crate::aside::Aside;
use crate::node::Node;
use crate::threads::ThreadError;

/// Its niceness, the highest: where both want the processor, it gets a sixtieth of a server thread's share.
const NICE: i32 = 19;

/// Handle on the thread.
pub type Stager = Aside<StageJob, StageDone>;

/// Starts the thread, which wakes this reactor.
pub fn start(node: &Arc<Node>, reactor: Waker) -> Result<Stager, ThreadError> {
    Aside::start(node, reactor, "trireme-stage", yield_to_all, StageJob::run)
}

fn yield_to_all() {
    // SAFETY: no memory is involved; 0 is the calling thread. Where it fails the thread is like the others.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
}
