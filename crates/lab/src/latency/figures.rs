//! Computes figures from commit times: gaps, latencies, throughput.

use std::time::{Duration, Instant};

use super::load::Commit;
use crate::frame::Measured;

/// A window of time.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// The begin.
    pub from: Instant,
    /// The end.
    pub to: Instant,
}

impl Window {
    /// The window of this length from `from` on.
    pub fn new(from: Instant, length: Duration) -> Self {
        Self {
            from,
            to: from + length,
        }
    }

    fn contains(&self, moment: Instant) -> bool {
        (self.from..self.to).contains(&moment)
    }
}

/// A time without a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The last commit before it.
    pub begin: Instant,
    /// The length.
    pub length: Duration,
}

impl Gap {
    /// The length in milliseconds.
    pub fn ms(&self) -> f64 {
        self.length.as_secs_f64() * 1000.0
    }
}

/// The longest gap within `window`. A gap that began before the window counts from the last commit before it; a gap
/// that does not end counts up to the window's end.
pub fn longest_gap(commits: &[Commit], window: Window) -> Gap {
    let mut done: Vec<Instant> = commits.iter().map(|commit| commit.done).collect();
    done.sort_unstable();
    let before = done.iter().copied().rfind(|moment| *moment < window.from);
    let within = done
        .iter()
        .copied()
        .filter(|moment| window.contains(*moment));
    let mut begin = before.unwrap_or(window.from);
    let mut longest = Gap {
        begin,
        length: Duration::ZERO,
    };
    for moment in within.chain([window.to]) {
        let length = moment - begin;
        if length > longest.length {
            longest = Gap { begin, length };
        }
        begin = moment;
    }
    longest
}

/// The latencies, in milliseconds and sorted, of the commits that were due within `window` and are done.
pub fn latencies_ms(commits: &[Commit], window: Window) -> Vec<f64> {
    let due = commits.iter().filter(|commit| window.contains(commit.due));
    let mut ms: Vec<f64> = due
        .map(|commit| (commit.done - commit.due).as_secs_f64() * 1000.0)
        .collect();
    ms.sort_by(f64::total_cmp);
    ms
}

/// The number of commits in each second from `from` on.
pub fn by_second(commits: &[Commit], from: Instant, seconds: usize) -> Vec<u64> {
    let mut counts = vec![0; seconds];
    for commit in commits {
        let second = commit.done.checked_duration_since(from);
        let second = second.map(|since| since.as_secs() as usize);
        if let Some(count) = second.and_then(|second| counts.get_mut(second)) {
            *count += 1;
        }
    }
    counts
}

/// Packs the figures of a trial for the frame.
pub fn measured<N: Into<String>>(
    figures: impl IntoIterator<Item = (N, f64)>,
    per_second: Vec<u64>,
) -> Measured {
    let figures = figures.into_iter();
    Measured {
        figures: figures.map(|(name, value)| (name.into(), value)).collect(),
        per_second,
    }
}

/// The commits per second within `window`.
pub fn per_second(commits: &[Commit], window: Window) -> f64 {
    let count = commits
        .iter()
        .filter(|commit| window.contains(commit.done))
        .count();
    count as f64 / (window.to - window.from).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, ms: &[u64]) -> Vec<Commit> {
        ms.iter()
            .map(|ms| Commit {
                due: start,
                done: start + Duration::from_millis(*ms),
            })
            .collect()
    }

    fn gap_ms(done_ms: &[u64], from_ms: u64, to_ms: u64) -> u128 {
        let start = Instant::now();
        let window = Window {
            from: start + Duration::from_millis(from_ms),
            to: start + Duration::from_millis(to_ms),
        };
        longest_gap(&at(start, done_ms), window).length.as_millis()
    }

    #[test]
    fn gaps_within_the_window_count() {
        assert_eq!(gap_ms(&[0, 10, 30, 60, 500, 1000], 5, 65), 30);
    }

    #[test]
    fn a_gap_that_begins_before_or_never_ends_counts() {
        assert_eq!(gap_ms(&[0, 80, 90, 100], 50, 100), 80);
        assert_eq!(gap_ms(&[0, 50, 55], 50, 100), 50);
        assert_eq!(gap_ms(&[0, 50, 55, 900], 52, 100), 45);
        assert_eq!(gap_ms(&[], 50, 100), 50);
    }

    #[test]
    fn a_gap_is_known_by_its_begin() {
        let start = Instant::now();
        let window = Window::new(start, Duration::from_millis(100));
        let gap = longest_gap(&at(start, &[10, 20, 70, 90]), window);
        assert_eq!(gap.begin, start + Duration::from_millis(20));
        assert_eq!(gap.ms(), 50.0);
    }

    #[test]
    fn the_gap_of_all_is_shorter_than_that_of_one() {
        let one = [0, 40, 100];
        let other = [20, 60, 80];
        let all = [one, other].concat();
        assert_eq!(gap_ms(&one, 0, 100), 60);
        assert_eq!(gap_ms(&all, 0, 100), 20);
    }

    #[test]
    fn seconds_count_from_a_moment_on() {
        let start = Instant::now();
        let commits = at(start, &[500, 1000, 1999, 2000, 3001]);
        let from = start + Duration::from_secs(1);
        assert_eq!(by_second(&commits, from, 2), [2, 1]);
    }

    #[test]
    fn latency_runs_from_when_a_commit_was_due() {
        let start = Instant::now();
        let window = Window::new(start, Duration::from_millis(50));
        let mut commits = at(start, &[7, 3, 200]);
        commits[1].due = start + Duration::from_millis(1);
        assert_eq!(latencies_ms(&commits, window), [2.0, 7.0, 200.0]);
        assert_eq!(per_second(&commits, window), 40.0);
    }
}
