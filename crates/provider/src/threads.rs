//! The start of a node's own threads. They take no signal of the process, and a panic in one of them ends the process.

use std::io;
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};

use crate::node::Node;

/// The system does not start a thread.
#[derive(Debug, thiserror::Error)]
#[error(
    "the thread {name} cannot be started: {source}; raise the limit of tasks (TasksMax of the service, ulimit -u)"
)]
pub struct ThreadError {
    name: &'static str,
    source: io::Error,
}

/// Starts a thread of this name, which runs `body`.
pub fn start(
    node: &Arc<Node>,
    name: &'static str,
    body: impl FnOnce(&Weak<Node>) + Send + 'static,
) -> Result<JoinHandle<()>, ThreadError> {
    let node = Arc::downgrade(node);
    spawn(name, move || guard(&node, || body(&node)))
}

/// Starts a thread of this name that takes no signal of the process, and whose panics concern its caller alone.
pub fn spawn<T: Send + 'static>(
    name: &'static str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, ThreadError> {
    let builder = Builder::new().name(name.into());
    with_signals_blocked(|| builder.spawn(body)).map_err(|source| ThreadError { name, source })
}

/// Ends the process after a panic in the ordering code: a node without that code would hang its cluster silently.
fn guard(node: &Weak<Node>, body: impl FnOnce()) {
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

/// Starts a thread, by `spawn`, that takes no signal of the process: the server takes them in a thread of its own.
/// Signals of the thread's own faults stay open: the server's handler prints the stack.
fn with_signals_blocked<T>(spawn: impl FnOnce() -> T) -> T {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_not_started_is_named_with_the_remedy() {
        let source = io::Error::from_raw_os_error(libc::EAGAIN);
        let name = crate::flusher::FLUSHER;
        let text = ThreadError { name, source }.to_string();
        assert!(text.contains(name) && text.contains("TasksMax"), "{text}");
    }
}
