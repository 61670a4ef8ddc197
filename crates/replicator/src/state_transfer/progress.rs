//! The catch-up progress of a database that follows the others, from its own log or by IST.

use std::fmt;

use trireme_certification::Seqno;

use super::{Place, StateTransfer};

/// Minimum time between two lines about it.
const TELL_MS: u64 = 10_000;
/// Minimum time of a useful rate.
const RATE_MS: u64 = 500;

/// The catch-up of a database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CatchUp {
    /// The seqno at which it began.
    from: Seqno,
    began_ms: u64,
    /// Time of the last line, and the seqno at that time.
    mark: (u64, Seqno),
}

/// The catch-up progress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Entries applied since the start.
    pub done: u64,
    /// Entries in all; grows while the others commit more.
    pub total: u64,
    /// Entries applied per second, recently; None: unknown.
    pub per_second: Option<f64>,
}

impl Progress {
    /// Returns the progress in percent.
    pub fn percent(&self) -> f64 {
        self.done as f64 * 100.0 / self.total.max(1) as f64
    }

    /// Returns the seconds left at this rate, if no entries are added.
    pub fn left_s(&self) -> Option<u64> {
        let left = (self.total - self.done) as f64;
        let rate = self.per_second.filter(|rate| *rate > 0.0);
        rate.map(|rate| (left / rate).ceil() as u64)
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (done, total, percent) = (self.done, self.total, self.percent());
        write!(f, "{done} of {total} entries ({percent:.1} %)")?;
        if let Some(rate) = self.per_second {
            write!(f, ", {rate:.0}/s")?;
        }
        match self.left_s() {
            Some(left_s) => write!(f, ", {left_s} s left"),
            None => Ok(()),
        }
    }
}

impl CatchUp {
    /// Returns a line for the log when the database has arrived, if that took a while.
    fn arrived(&self, now_ms: u64, done: u64) -> Option<String> {
        let lasted_ms = now_ms - self.began_ms;
        let s = lasted_ms as f64 / 1000.0;
        let rate = done as f64 / s;
        let text =
            || format!("Caught up with the cluster: {done} entries in {s:.1} s ({rate:.0}/s)");
        (lasted_ms >= RATE_MS).then(text)
    }

    /// Returns a catch-up that begins here.
    fn new(from: Seqno, now_ms: u64) -> CatchUp {
        CatchUp {
            from,
            began_ms: now_ms,
            mark: (now_ms, from),
        }
    }

    fn progress(&self, now_ms: u64, at: Seqno, end: Seqno) -> Progress {
        let entries = |from: Seqno, to: Seqno| u64::try_from(to - from).unwrap_or(0);
        let rate = |(since_ms, from): (u64, Seqno)| {
            let elapsed_ms = now_ms.saturating_sub(since_ms);
            let rate = entries(from, at) as f64 * 1000.0 / elapsed_ms.max(1) as f64;
            (elapsed_ms >= RATE_MS).then_some(rate)
        };
        let done = entries(self.from, at);
        Progress {
            done,
            total: entries(self.from, end).max(done),
            per_second: rate(self.mark).or_else(|| rate((self.began_ms, self.from))),
        }
    }
}

impl StateTransfer {
    /// Notes that the database follows the others from this seqno on.
    pub(crate) fn follow_from(&mut self, seqno: Seqno, now_ms: u64) {
        self.catch_up = Some(CatchUp::new(seqno, now_ms));
    }

    /// Returns the progress of the database, which is at `low`; None: it follows the order, or waits for an SST.
    pub(crate) fn progress(&self, now_ms: u64, low: Seqno, end: Seqno) -> Option<Progress> {
        let catch_up = self.catch_up.as_ref()?;
        Some(catch_up.progress(now_ms, low, end))
    }

    /// Returns a line for the log, now and then, and when the database has arrived.
    pub(crate) fn progress_line(&mut self, now_ms: u64, low: Seqno, end: Seqno) -> Option<String> {
        let (catch_up, progress) = (self.catch_up?, self.progress(now_ms, low, end)?);
        match self.place() {
            Place::Transfer => {}
            Place::Active if low < self.joined_at => {}
            Place::Active => {
                self.catch_up = None;
                return catch_up.arrived(now_ms, progress.done);
            }
            Place::Closed | Place::Admission | Place::Final => {
                self.catch_up = None;
                return None;
            }
        }
        if now_ms < catch_up.mark.0 + TELL_MS {
            return None;
        }
        self.catch_up = Some(CatchUp {
            mark: (now_ms, low),
            ..catch_up
        });
        Some(format!("Catching up with the cluster: {progress}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catch_up_tells_how_far_how_fast_and_how_long() {
        let catch_up = CatchUp::new(1_000, 50_000);
        let text = |ms, at, end| catch_up.progress(ms, at, end).to_string();
        assert_eq!(text(50_100, 1_050, 2_000), "50 of 1000 entries (5.0 %)");
        let later = "250 of 1000 entries (25.0 %), 125/s, 6 s left";
        assert_eq!(text(52_000, 1_250, 2_000), later);
        let stuck = "0 of 1000 entries (0.0 %), 0/s";
        assert_eq!(text(52_000, 1_000, 2_000), stuck);
        let growing = catch_up.progress(60_000, 2_000, 4_000);
        assert_eq!((growing.total, growing.left_s()), (3_000, Some(20)));
    }

    #[test]
    fn the_rate_is_that_of_late() {
        let catch_up = CatchUp {
            mark: (60_000, 1_900),
            ..CatchUp::new(1_000, 50_000)
        };
        let of_late = catch_up.progress(61_000, 1_910, 2_000).per_second;
        assert_eq!(of_late, Some(10.0));
        let just_told = catch_up.progress(60_100, 1_900, 2_000).per_second;
        assert!(just_told.is_some_and(|rate| (rate - 89.1).abs() < 0.1));
    }
}
