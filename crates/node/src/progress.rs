//! How far a connection has come.

use std::time::{Duration, Instant};

/// A leave that the cluster does not answer is given up after this time (MariaDB's suites kill a
/// server that takes more than 10 s to stop).
pub const LEAVE_PATIENCE: Duration = Duration::from_secs(2);

/// A node asks again several times a second; the same refusal is worth a line this often.
const TELL_AGAIN: Duration = Duration::from_secs(60);
/// And so many different ones: their texts are a peer's.
const TELL_MAX: u32 = 10;

/// How far joining or leaving has come.
#[derive(Debug, Default)]
pub struct Progress {
    /// In a view.
    pub admitted: bool,
    /// The cluster will not have this node, and why.
    pub refused: Option<String>,
    /// The node has left, and its server, if it has one, was told so.
    pub closed: bool,
    /// When that was logged.
    told: Option<Instant>,
    /// Since when different refusals are counted, and how many were logged.
    counted: Option<(Instant, u32)>,
    /// The node cannot go on, and why.
    pub failed: Option<String>,
}

impl Progress {
    /// The cluster will not have this node. True if that is news, or a reminder is due.
    pub fn refuse(&mut self, reason: String, now: Instant) -> bool {
        let is_news = self.refused.as_ref() != Some(&reason);
        let is_due = self.told.is_none_or(|told| now - told >= TELL_AGAIN);
        self.refused = Some(reason);
        let is_fresh = |since: &Instant| now - *since < TELL_AGAIN;
        let counted = self.counted.filter(|(since, _)| is_fresh(since));
        let (since, count) = counted.unwrap_or((now, 0));
        let tells = (is_news || is_due) && count < TELL_MAX;
        if tells {
            self.told = Some(now);
            self.counted = Some((since, count + 1));
        }
        tells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_refusal_is_told_now_and_then() {
        let (mut progress, begin) = (Progress::default(), Instant::now());
        let mut refuse = |reason: &str, after_s| {
            progress.refuse(reason.to_owned(), begin + Duration::from_secs(after_s))
        };
        assert!(refuse("no", 0) && !refuse("no", 1) && !refuse("no", 59));
        assert!(refuse("another reason", 59) && refuse("no", 59) && !refuse("no", 60));
        assert!(refuse("no", 119));
    }

    #[test]
    fn reasons_that_change_all_the_time_are_told_now_and_then() {
        let (mut progress, begin) = (Progress::default(), Instant::now());
        let mut told = |after_s| {
            let refuse = |n: u32| {
                let now = begin + Duration::from_secs(after_s);
                progress.refuse(n.to_string(), now)
            };
            (0..1_000).map(refuse).filter(|told| *told).count()
        };
        assert_eq!((told(0), told(30), told(61)), (10, 0, 10));
    }
}
