//! Computes each outcome once: the core is deterministic, so process and input determine the outcome.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::fingerprint::{Known, fingerprint};
use crate::process::{Input, Outcome, Process};

const SHARDS: usize = 64;

type Shard<T> = Mutex<HashMap<(u64, u64), Arc<T>>>;

/// Outcomes by process and input, and one copy of each distinct process.
pub struct Memo {
    outcomes: Vec<Shard<Outcome>>,
    processes: Vec<Shard<Known<Process>>>,
}

fn lock<T>(
    shards: &[Shard<T>],
    key: u64,
) -> std::sync::MutexGuard<'_, HashMap<(u64, u64), Arc<T>>> {
    let shard = &shards[key as usize % SHARDS];
    // A panic cannot leave a map half-changed, so the lock's poison is ignored.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memo {
    pub fn new() -> Memo {
        Memo {
            outcomes: (0..SHARDS).map(|_| Shard::default()).collect(),
            processes: (0..SHARDS).map(|_| Shard::default()).collect(),
        }
    }

    pub fn handle(&self, process: &Known<Process>, input: Input) -> Arc<Outcome> {
        let key = (process.fingerprint, fingerprint(&input));
        if let Some(outcome) = lock(&self.outcomes, key.0).get(&key) {
            return outcome.clone();
        }
        let mut outcome = process.value.handle(&input);
        let known = (outcome.process.fingerprint, 0);
        outcome.process = lock(&self.processes, known.0)
            .entry(known)
            .or_insert(outcome.process)
            .clone();
        let outcome = Arc::new(outcome);
        lock(&self.outcomes, key.0).insert(key, outcome.clone());
        outcome
    }

    /// Number of distinct processes seen.
    pub fn processes(&self) -> usize {
        (0..SHARDS)
            .map(|shard| lock(&self.processes, shard as u64).len())
            .sum()
    }
}

impl Default for Memo {
    fn default() -> Self {
        Memo::new()
    }
}
