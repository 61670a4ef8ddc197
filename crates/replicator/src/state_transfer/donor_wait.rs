//! The wait of a joiner for a connection to each member that could give it a state. A process that died with its machine,
//! or before this one began, is in the view until the group misses it. The order may choose it as donor, and a server
//! that has prepared itself for an SST can only end when its donor is gone.
//!
//! In: whether such a member is not connected. Out: the end of the wait.

/// Time that the group needs beyond `evs.suspect_timeout` to remove a silent member.
const REMOVAL_MS: u64 = 1_000;

#[derive(Debug, Default)]
pub(super) struct DonorWait {
    /// The end of the wait; None: it has not begun. After that time the joiner takes its chance: the others may be
    /// connected with the member.
    until_ms: Option<u64>,
    waits: bool,
}

impl DonorWait {
    /// Takes in whether a member that could give a state is not connected. Returns the longest time of the wait if that
    /// begins. The joiner waits once in a transfer, until the group has had the time to remove a dead member.
    pub(super) fn review(&mut self, is_missing: bool, now_ms: u64, suspect_ms: u64) -> Option<u64> {
        let begins = is_missing && self.until_ms.is_none();
        let longest_ms = suspect_ms.saturating_add(REMOVAL_MS);
        if begins {
            self.until_ms = Some(now_ms.saturating_add(longest_ms));
        }
        self.waits = is_missing && self.until_ms.is_some_and(|until_ms| now_ms < until_ms);
        begins.then_some(longest_ms)
    }

    /// Returns the end of the wait; None: the joiner does not wait.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        self.until_ms.filter(|_| self.waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_joiner_waits_until_all_are_connected_or_the_dead_have_been_removed() {
        let mut wait = DonorWait::default();
        let mut review = |is_missing, now_ms| {
            let begun = wait.review(is_missing, now_ms, 5_000);
            (begun, wait.deadline_ms())
        };
        assert_eq!(review(false, 100), (None, None));
        assert_eq!(review(true, 1_000), (Some(6_000), Some(7_000)));
        assert_eq!(review(true, 6_999), (None, Some(7_000)));
        assert_eq!(review(false, 6_999), (None, None));
        assert_eq!(review(true, 7_000), (None, None), "once");
    }
}
