//! The meeting of threads at a lock: callers hand in an event and wait for its answer, appliers wait for work. A thread
//! that changes the state under the lock wakes the threads for which the change matters.
//!
//! This crate does not know that state (see [`UnderLock`]). So `tests/schedules` can put a model under the lock, and
//! run these same source files under a scheduler that looks for lost wake-ups. Therefore the files use only the
//! primitives of `crate::sync`: those of the standard library here, those of the scheduler there.

#![forbid(unsafe_code)]

mod handover;
#[cfg(feature = "lock-times")]
mod lock_times;
mod waiting;

#[cfg_attr(feature = "lock-times", allow(unused_imports))]
mod sync {
    pub use std::sync::atomic::AtomicUsize;
    pub use std::sync::{Arc, Condvar, Mutex, MutexGuard};
}

/// The primitives of the lock around the core.
mod core_lock {
    #[cfg(not(feature = "lock-times"))]
    pub use crate::sync::{Condvar, Mutex, MutexGuard};

    #[cfg(feature = "lock-times")]
    pub use crate::lock_times::{Condvar, Mutex, MutexGuard};
}

#[cfg(feature = "lock-times")]
pub use lock_times::take_lock_times_us;

pub use handover::{Handover, UnderLock};
pub use waiting::{Slot, Ticket, Waiting};

#[cfg(test)]
mod tests;
