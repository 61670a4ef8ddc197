//! The threads that work on the log's disk without the node's lock: flusher, stager and reader. In: the engine's jobs.
//! Out: the jobs' results, and the flush that the calling thread should do itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use trireme_engine::{ServeDone, ServeJob, StageDone, StageJob};
use trireme_log::FlushJob;
use trireme_transport::Waker;

use crate::flusher::{FLUSHER, Pace};
use crate::node::Node;
use crate::reader::{self, Reader};
use crate::stager::{self, Stager};
use crate::threads::ThreadError;
use crate::worker::Worker;

/// The handles on the running threads. Drop them without the node's lock: the flusher may wait for it, the stager and
/// the reader for the disk.
pub struct Running {
    flusher: Worker<FlushJob>,
    stager: Stager,
    reader: Reader,
}

impl Running {
    /// Starts the threads, which wake this reactor.
    pub fn start(node: &Arc<Node>, reactor: &Waker) -> Result<Running, ThreadError> {
        Ok(Running {
            flusher: Worker::start(node, FLUSHER, || Node::flush)?,
            stager: stager::start(node, reactor.clone())?,
            reader: reader::start(node, reactor.clone())?,
        })
    }
}

/// The jobs of a connection, and its threads. Without threads jobs are dropped: their connection has ended.
#[derive(Default)]
pub struct DiskThreads {
    running: Option<Running>,
    /// A flush that the engine has requested, and no thread has begun.
    flush_due: Option<FlushJob>,
    /// The durations of recent flushes.
    pace: Pace,
}

impl DiskThreads {
    /// Takes over the threads of a connection.
    pub fn run(&mut self, running: Running) {
        self.running = Some(running);
    }

    /// Gives the threads back at the end of their connection.
    pub fn take(&mut self) -> Option<Running> {
        self.running.take()
    }

    // ---- flushes ----

    /// Takes in a flush. The thread with the node's lock hands it over before it releases the lock.
    pub fn flush(&mut self, job: FlushJob) {
        self.flush_due = Some(job);
    }

    /// Returns true if a flush waits for a thread.
    pub fn has_flush_due(&self) -> bool {
        self.flush_due.is_some()
    }

    /// Returns the flush that is due, if the calling thread should do it itself: if that takes no longer than waking
    /// another thread.
    pub fn take_quick_flush(&mut self) -> Option<FlushJob> {
        let is_quick = |job: &mut FlushJob| job.is_awaited() && self.pace.is_quick(job.bytes());
        self.flush_due.take_if(is_quick)
    }

    /// Hands the flush that is due to the flusher.
    pub fn hand_over_flush(&mut self) {
        if let (Some(running), Some(job)) = (&self.running, self.flush_due.take()) {
            running.flusher.hand(job);
        }
    }

    /// Notes the duration of a flush of `bytes` bytes.
    pub fn note_flush(&mut self, bytes: u64, took: Duration) {
        self.pace.note(Instant::now(), bytes, took);
    }

    // ---- staging, and reads for peers ----

    /// Hands a job to the stager.
    pub fn stage(&self, job: StageJob) {
        if let Some(running) = &self.running {
            running.stager.hand(job);
        }
    }

    /// Returns a result of the stager, if there is one.
    pub fn next_staged(&self) -> Option<StageDone> {
        self.running.as_ref()?.stager.next_done()
    }

    /// Hands a job to the reader.
    pub fn serve(&self, job: ServeJob) {
        if let Some(running) = &self.running {
            running.reader.hand(job);
        }
    }

    /// Returns a result of the reader, if there is one.
    pub fn next_served(&self) -> Option<ServeDone> {
        self.running.as_ref()?.reader.next_done()
    }
}
