//! The thread that flushes the log without the node's lock: other threads commit meanwhile, and their entries share the
//! next flush. Where flushes are quick, the reactor itself does most of the flushes that acknowledgements wait for
//! (`repl.durability=disk`).

use std::time::{Duration, Instant};

/// Limit of a quick flush. Waking a thread takes a tenth of this, and several times that if the processors are busy.
const QUICK: Duration = Duration::from_micros(300);
/// Duration of a stall. A stall is remembered: the reactor, which also receives, must not be blocked so long again.
const STALL: Duration = Duration::from_millis(10);
const REMEMBERED: Duration = Duration::from_secs(10);
/// Maximum size of a small flush. Larger flushes take longer, and tell nothing about small ones.
const SMALL_BYTES: u64 = 64 << 10;

/// The thread's name. The engine has one running flush at a time.
pub const FLUSHER: &str = "trireme-flush";

/// The durations of small flushes.
#[derive(Debug, Default)]
pub struct Pace {
    /// The longest duration; each later flush reduces it a little. None before the first flush.
    longest: Option<Duration>,
    stalled_at: Option<Instant>,
}

impl Pace {
    /// Notes a flush of `bytes` bytes that took `took`, and has ended now.
    pub fn note(&mut self, now: Instant, bytes: u64, took: Duration) {
        if bytes > SMALL_BYTES {
            return;
        }
        let before = self.longest.unwrap_or_default();
        self.longest = Some(took.max(before * 31 / 32));
        let stalled = (took >= STALL).then_some(now);
        let is_recent = |at: &Instant| now.duration_since(*at) < REMEMBERED;
        self.stalled_at = stalled.or(self.stalled_at.filter(is_recent));
    }

    /// Returns true if a flush of `bytes` bytes will probably take no longer than waking another thread.
    pub fn is_quick(&self, bytes: u64) -> bool {
        let is_quick = self.longest.is_some_and(|longest| longest < QUICK);
        is_quick && self.stalled_at.is_none() && bytes <= SMALL_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_flush_counts_for_a_while_a_stall_for_seconds() {
        let (start, quick) = (Instant::now(), Duration::from_micros(60));
        let mut pace = Pace::default();
        assert!(!pace.is_quick(100), "nothing is known yet");
        pace.note(start, 100, quick);
        assert!(pace.is_quick(100) && !pace.is_quick(1 << 20));
        pace.note(start, 1 << 20, STALL);
        assert!(pace.is_quick(100), "it was large");
        let mut until_quick = |at: Instant, slow: Duration| {
            pace.note(at, 100, slow);
            assert!(!pace.is_quick(100));
            let mut flushes = 0;
            while !pace.is_quick(100) {
                flushes += 1;
                pace.note(at + flushes * Duration::from_millis(1), 100, quick);
            }
            flushes
        };
        assert!((60..100).contains(&until_quick(start, Duration::from_millis(3))));
        let later = start + REMEMBERED;
        assert_eq!(until_quick(later, STALL), 10_000);
    }
}
