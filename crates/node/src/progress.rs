//! How far a connection has come.

use std::time::{Duration, Instant};

/// A leave that the cluster does not answer is given up after this time (MariaDB's suites kill a
/// server that takes more than 10 s to stop).
pub const LEAVE_PATIENCE: Duration = Duration::from_secs(2);

/// A node asks again several times a second; the same refusal is worth a line this often.
const TELL_AGAIN: Duration = Duration::from_secs(60);

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
    /// The node cannot go on, and why.
    pub failed: Option<String>,
}

impl Progress {
    /// The cluster will not have this node. True if that is news, or a reminder is due.
    pub fn refuse(&mut self, reason: String, now: Instant) -> bool {
        let is_news = self.refused.as_ref() != Some(&reason);
        let is_due = self.told.is_none_or(|told| now - told >= TELL_AGAIN);
        self.refused = Some(reason);
        if is_news || is_due {
            self.told = Some(now);
        }
        is_news || is_due
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
}
