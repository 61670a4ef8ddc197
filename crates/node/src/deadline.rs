//! The end of a wait for a primary component (`pc.wait_prim_timeout`). In: the node's progress. Out: whether the wait is
//! over.

use std::time::{Duration, Instant};

use trireme_group::Position;

/// The end of a wait. It moves while a leader brings this node's log up to date: the node is admitted when it has come to
/// its own admission there.
#[derive(Debug)]
pub struct Deadline {
    wait: Duration,
    until: Instant,
    committed: Position,
}

impl Deadline {
    /// Returns the end of a wait that begins now.
    pub fn within(wait: Duration) -> Deadline {
        Deadline {
            wait,
            until: Instant::now() + wait,
            committed: 0,
        }
    }

    /// Returns true if the wait is over. `committed`: the group's commit point on this node. `counts_anew`: the caller
    /// has another reason to let the time begin anew, as long as that reason lasts.
    pub fn is_over(&mut self, now: Instant, committed: Position, counts_anew: bool) -> bool {
        if counts_anew || committed > self.committed {
            self.until = now + self.wait;
        }
        self.committed = self.committed.max(committed);
        now >= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(30);

    /// Returns a deadline, and the time so many seconds after its beginning.
    fn begun() -> (Deadline, impl Fn(u64) -> Instant) {
        let deadline = Deadline::within(WAIT);
        let began = deadline.until - WAIT;
        (deadline, move |s| began + Duration::from_secs(s))
    }

    #[test]
    fn a_wait_goes_on_while_the_log_grows() {
        let (mut deadline, at) = begun();
        assert!(!deadline.is_over(at(29), 0, false));
        assert!(!deadline.is_over(at(29), 7, false));
        assert!(!deadline.is_over(at(58), 7, false));
        assert!(!deadline.is_over(at(58), 8, false));
        assert!(!deadline.is_over(at(87), 8, false));
        assert!(deadline.is_over(at(88), 8, false));
    }

    #[test]
    fn a_wait_goes_on_while_the_caller_has_a_reason() {
        let (mut deadline, at) = begun();
        assert!(!deadline.is_over(at(29), 0, true));
        assert!(!deadline.is_over(at(99), 0, true));
        assert!(!deadline.is_over(at(128), 0, false));
        assert!(deadline.is_over(at(129), 0, false));
    }
}
