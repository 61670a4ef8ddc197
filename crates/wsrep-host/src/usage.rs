//! The processor time and the context switches of this process.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};

/// The use since the process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// User and system time.
    pub cpu: Duration,
    /// Times that a thread gave up its processor to wait.
    pub voluntary_switches: u64,
}

impl Usage {
    /// Returns the use until now. Returns zeros if the kernel refuses, which it never does for the own process.
    pub fn now() -> Self {
        let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
            return Self::default();
        };
        let times = [usage.user_time(), usage.system_time()];
        let micros = times.map(|time| time.tv_sec() * 1_000_000 + time.tv_usec());
        Self {
            cpu: Duration::from_micros(micros.iter().sum::<i64>().max(0) as u64),
            voluntary_switches: usage.voluntary_context_switches().max(0) as u64,
        }
    }

    /// Returns the use since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            voluntary_switches: self.voluntary_switches - earlier.voluntary_switches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn work_and_waiting_are_seen() {
        let before = Usage::now();
        let end = Instant::now() + Duration::from_millis(60);
        while Instant::now() < end {}
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let spent = Usage::now().since(before);
        assert!(spent.cpu > Duration::from_millis(1), "{spent:?}");
        assert!(spent.voluntary_switches >= 5, "{spent:?}");
    }
}
