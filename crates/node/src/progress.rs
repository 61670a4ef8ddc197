//! The progress of joining or leaving a cluster.

use std::time::{Duration, Instant};

/// Time after which an unanswered leave is given up (MariaDB's suites kill a server that takes more than 10 s to stop).
pub const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Time between two lines about the same refusal: a node asks again several times a second.
const TELL_AGAIN: Duration = Duration::from_secs(60);
/// Maximum of lines about different refusals within that time: a peer chooses their texts.
const TELL_MAX: u32 = 10;

/// The progress of joining or leaving.
#[derive(Debug, Default)]
pub struct Progress {
    /// The node was admitted to a view.
    pub admitted: bool,
    /// The reason why the cluster refuses this node; None if it does not.
    pub refused: Option<String>,
    /// The node has left, and its server, if it has one, was told so.
    pub closed: bool,
    /// The time of the last line about a refusal.
    told: Option<Instant>,
    /// The start of the period in which different refusals are counted, and the number that was logged in it.
    counted: Option<(Instant, u32)>,
    /// The reason why the node cannot go on; None if it can.
    pub failed: Option<String>,
}

impl Progress {
    /// Notes that the cluster refuses this node. Returns true if the reason is new, or a reminder is due.
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
