//! The thread that flushes the log without the node's lock: others commit meanwhile, and what they append shares the
//! next flush. Where flushes are quick the reactor does most of those itself that acknowledgements wait for
//! (`repl.durability=disk`).

use std::time::{Duration, Instant};

/// Flushes are quick if they take less. Waking a thread takes a tenth of this, several times that if the processors are
/// busy.
const QUICK: Duration = Duration::from_micros(300);
/// A flush that took this long is remembered: the reactor, which hears the others, must not be kept so long again.
const STALL: Duration = Duration::from_millis(10);
const REMEMBERED: Duration = Duration::from_secs(10);
/// Larger flushes take the longer the larger they are: they say nothing of small ones.
const SMALL_BYTES: u64 = 64 << 10;

/// The thread's name. The engine has one flush under way at a time.
pub const FLUSHER: &str = "trireme-flush";

/// How long small flushes take.
#[derive(Debug, Default)]
pub struct Pace {
    /// The longest, each counting for less with every one since; none before the first.
    longest: Option<Duration>,
    stalled_at: Option<Instant>,
}

impl Pace {
    /// A flush of so many bytes that has ended now took so long.
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

    /// True if a flush of so many bytes probably takes no longer than waking another thread may.
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
