//! The thread that reads the log for peers that pull entries (IST), and encodes the entries: up to 1 MiB at a time. Under the
//! node's lock this kept commits waiting for 1.6 ms (from memory) to 5 ms (from a disk; measured, two processors).

use std::sync::Arc;

use trireme_engine::{ServeDone, ServeJob};
use trireme_transport::Waker;

use crate::aside::Aside;
use crate::node::Node;
use crate::threads::ThreadError;

/// Handle on the thread.
pub type Reader = Aside<ServeJob, ServeDone>;

/// Starts the thread, which wakes this reactor.
pub fn start(node: &Arc<Node>, reactor: Waker) -> Result<Reader, ThreadError> {
    Aside::start(node, reactor, "trireme-read", || (), ServeJob::run)
}
