//! The primitives of `std::sync`, with every step of every thread in shuttle's hands. Beyond what
//! shuttle does, waits end spuriously now and then, and timeouts happen.

use std::ops::{Deref, DerefMut};
use std::sync::{LockResult, PoisonError};
use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};

pub use shuttle::sync::Arc;
pub use shuttle::sync::atomic::AtomicUsize;

pub struct Mutex<T>(shuttle::sync::Mutex<T>);

pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    guard: shuttle::sync::MutexGuard<'a, T>,
}

impl<T> Mutex<T> {
    pub fn new(value: T) -> Mutex<T> {
        Mutex(shuttle::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.guard(self.0.lock())
    }

    /// A panic ends the whole run here.
    pub fn is_poisoned(&self) -> bool {
        false
    }

    fn guard<'a>(
        &'a self,
        locked: LockResult<shuttle::sync::MutexGuard<'a, T>>,
    ) -> LockResult<MutexGuard<'a, T>> {
        let wrap = |guard| MutexGuard { mutex: self, guard };
        locked
            .map(wrap)
            .map_err(|e| PoisonError::new(wrap(e.into_inner())))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

pub struct Condvar(shuttle::sync::Condvar);

impl Condvar {
    pub fn new() -> Condvar {
        Condvar(shuttle::sync::Condvar::new())
    }

    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        if thread_rng().gen_ratio(1, 16) {
            return let_others_in(guard);
        }
        let MutexGuard { mutex, guard } = guard;
        mutex.guard(self.0.wait(guard))
    }

    /// The time passes while others take up to three steps under the lock, or any number without it.
    pub fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        _timeout: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        for _ in 0..thread_rng().gen_range(1..=3) {
            if !condition(&mut guard) {
                break;
            }
            guard = let_others_in(guard).unwrap_or_else(PoisonError::into_inner);
        }
        Ok((guard, ()))
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

fn let_others_in<T>(guard: MutexGuard<'_, T>) -> LockResult<MutexGuard<'_, T>> {
    let mutex = guard.mutex;
    drop(guard);
    shuttle::thread::yield_now();
    mutex.lock()
}
