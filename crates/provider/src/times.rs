//! The times that the server's threads measure without the node's lock. [`trireme_node::CommitClock`] has the others.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trireme_node::{Latency, Stage, StageTimer, monotonic_ns};

/// Histograms of these times.
#[derive(Default)]
pub struct Times {
    /// The stages of commits.
    stages: Mutex<StageTimer>,
    /// The durations of certify() for write-sets that were ordered.
    commits: Mutex<Latency>,
}

impl Times {
    /// Notes the end of a stage that began at `began_ns`.
    pub fn note_stage(&self, stage: Stage, began_ns: u64) {
        let took_ns = monotonic_ns().saturating_sub(began_ns);
        lock(&self.stages).add(stage, took_ns);
    }

    /// Returns a copy of the stages' times.
    pub fn stages(&self) -> StageTimer {
        lock(&self.stages).clone()
    }

    /// Notes that a write-set was ordered; its certify() began at `began_ns`.
    pub fn note_commit(&self, began_ns: u64) {
        let took = Duration::from_nanos(monotonic_ns().saturating_sub(began_ns));
        lock(&self.commits).add(took.as_secs_f64());
    }

    /// Returns the durations of certify() since the last reset.
    pub fn commits(&self) -> Latency {
        *lock(&self.commits)
    }

    /// Forgets all times (FLUSH STATUS).
    pub fn reset(&self) {
        *lock(&self.commits) = Latency::default();
        lock(&self.stages).reset();
    }
}

fn lock<T>(times: &Mutex<T>) -> MutexGuard<'_, T> {
    times.lock().unwrap_or_else(PoisonError::into_inner)
}
