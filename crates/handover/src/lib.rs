//! How threads meet at a lock: callers leave an event and wait for its answer, appliers wait for
//! work, and whoever changes what is under the lock wakes those whom it concerns.
//!
//! What is under the lock is of no concern here (see [`UnderLock`]), so that `tests/schedules.rs`
//! can put a model there and run these very source files under a scheduler that looks for lost
//! wake-ups. For this they name the primitives of `crate::sync` only, which are those of the
//! standard library here and the scheduler's there.

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

/// Those of the lock around the core.
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
