//! Variants of the primitives of [`crate::sync`] that measure the time for which each lock is held: for measurements
//! only (feature `lock-times`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{self, Arc, LockResult, PoisonError};
use std::time::{Duration, Instant};

/// Number of buckets: one for each microsecond; the last one counts all longer times.
const BUCKETS: usize = 100_000;

/// The counts of all locks of this process, in the order in which the locks were made.
static ALL: sync::Mutex<Vec<Arc<Counts>>> = sync::Mutex::new(Vec::new());

struct Counts(Vec<AtomicU64>);

impl Counts {
    fn of_new_lock() -> Arc<Counts> {
        let counts = Arc::new(Counts((0..BUCKETS).map(|_| AtomicU64::new(0)).collect()));
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::clone(&counts));
        counts
    }

    fn note(&self, held: Duration) {
        let at = (held.as_micros() as usize).min(BUCKETS - 1);
        self.0[at].fetch_add(1, Ordering::Relaxed);
    }

    fn take(&self) -> Vec<(usize, u64)> {
        let counted = self.0.iter().map(|count| count.swap(0, Ordering::Relaxed));
        let counted = counted.enumerate().filter(|(_, count)| *count > 0);
        counted.collect()
    }
}

/// Returns for each lock, in the order in which they were made, a list of (microseconds, count): how often the lock was
/// held for that time since the last call.
pub fn take_lock_times_us() -> Vec<Vec<(usize, u64)>> {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().map(|counts| counts.take()).collect()
}

pub struct Mutex<T> {
    mutex: sync::Mutex<T>,
    counts: Arc<Counts>,
}

pub struct MutexGuard<'a, T> {
    guard: Option<sync::MutexGuard<'a, T>>,
    counts: &'a Counts,
    since: Instant,
}

impl<'a, T> MutexGuard<'a, T> {
    fn of(
        counts: &'a Counts,
        locked: LockResult<sync::MutexGuard<'a, T>>,
    ) -> LockResult<MutexGuard<'a, T>> {
        let new = |guard| MutexGuard {
            guard: Some(guard),
            counts,
            since: Instant::now(),
        };
        match locked {
            Ok(guard) => Ok(new(guard)),
            Err(error) => Err(PoisonError::new(new(error.into_inner()))),
        }
    }
}

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Mutex {
            mutex: sync::Mutex::new(value),
            counts: Counts::of_new_lock(),
        }
    }

    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        MutexGuard::of(&self.counts, self.mutex.lock())
    }

    pub fn is_poisoned(&self) -> bool {
        self.mutex.is_poisoned()
    }
}

impl<T> std::ops::Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_ref().expect("there until it is dropped")
    }
}

impl<T> std::ops::DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.guard.as_mut().expect("there until it is dropped")
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if let Some(guard) = self.guard.take() {
            drop(guard);
            self.counts.note(self.since.elapsed());
        }
    }
}

pub struct Condvar(sync::Condvar);

impl Condvar {
    pub fn new() -> Self {
        Condvar(sync::Condvar::new())
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    pub fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        guard.counts.note(guard.since.elapsed());
        let counts = guard.counts;
        let inner = guard.guard.take().expect("there until it is dropped");
        MutexGuard::of(counts, self.0.wait(inner))
    }
}
