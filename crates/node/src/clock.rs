//! The node's clock.

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds of CLOCK_BOOTTIME, which goes on while the machine sleeps (rule 17).
pub fn now_ms() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}
