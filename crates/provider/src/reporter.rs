//! The thread that writes the state-and-event file (docs/state-and-event-file.md). It takes the state under the node's
//! lock, and writes without the lock. With a slow disk it writes less often, and delays no other thread.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use trireme_node::state_file::StateWriter;

use crate::node::Node;
use crate::state::StateOfNode;
use crate::threads::{self, ThreadError};

const PERIOD: Duration = Duration::from_secs(1);
/// After a write the thread rests this many times the duration of the write.
const REST: u32 = 10;
/// The file gets as old as this rest and two writes: with writes of 15 s it still counts
/// ([`trireme_node::state_file::STALE_MS`]).
const REST_MAX: Duration = Duration::from_secs(30);

/// Handle on the thread. When the handle is dropped, the thread writes once more, and ends.
pub struct Reporter {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Reporter {
    /// Starts the thread for this directory (`base_dir`).
    pub fn start(node: &Arc<Node>, base_dir: &Path) -> Result<Reporter, ThreadError> {
        let (stop, stopped) = channel();
        let writer = StateWriter::new(base_dir);
        let body = move |node: &Weak<Node>| run(node, &writer, &stopped);
        let thread = threads::start(node, "trireme-state", body)?;
        Ok(Reporter {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Reporter {
    /// Do not drop it under the node's lock: the thread may be waiting for the lock.
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has ended the process already.
            let _ = thread.join();
        }
    }
}

fn run(node: &Weak<Node>, writer: &StateWriter, stopped: &Receiver<()>) {
    let mut state = StateOfNode::default();
    let mut has_failed = false;
    let mut is_last = false;
    loop {
        let Some(node) = node.upgrade() else { return };
        let file = state.take(&node);
        let began = Instant::now();
        let written = writer.write(&file.encode());
        let rest = rest_after(began.elapsed());
        match written {
            Ok(()) => has_failed = false,
            Err(error) if !has_failed => {
                has_failed = true;
                node.logger.info(format!(
                    "{error}: `trireme why-waiting` sees nothing new of this node; the node itself goes on. Trying again"
                ));
            }
            Err(_) => {}
        }
        drop(node);
        if is_last {
            return;
        }
        is_last = stopped.recv_timeout(rest) != Err(RecvTimeoutError::Timeout);
    }
}

/// Returns the time to rest after a write that took `took`.
fn rest_after(took: Duration) -> Duration {
    (took * REST).clamp(PERIOD, REST_MAX)
}

#[cfg(test)]
mod tests {
    use trireme_node::state_file::STALE_MS;

    use super::*;

    #[test]
    fn who_writes_slowly_writes_seldom() {
        let rest = |ms| rest_after(Duration::from_millis(ms));
        assert_eq!(rest(1), PERIOD);
        assert_eq!(rest(500), Duration::from_secs(5));
        assert_eq!(rest(60_000), REST_MAX);
    }

    /// `trireme why-waiting` and the agent must not drop the file of a node because its disk is slow.
    #[test]
    fn a_file_that_is_written_slowly_is_not_out_of_date() {
        for seconds in 0..=15 {
            let write = Duration::from_secs(seconds);
            let age_max = write + rest_after(write) + write;
            assert!(age_max < Duration::from_millis(STALE_MS), "{seconds}");
        }
    }
}
