//! Keeps needed entries in the log for a while longer: a database may lose commits that it has not flushed, and need
//! the entries again.

use std::collections::VecDeque;

use trireme_group::Position;

/// Number of notes within `unflushed_ms` of [`crate::Options::thresholds`].
const NOTED: u64 = 20;

/// The first positions that were needed recently: (ms, position).
#[derive(Debug, Default)]
pub(super) struct Pins {
    noted: VecDeque<(u64, Position)>,
}

impl Pins {
    /// Notes that entries from `needed_from` on are needed now. Returns the position from which they must be kept.
    pub(super) fn keep(
        &mut self,
        now_ms: u64,
        needed_from: Position,
        unflushed_ms: u64,
    ) -> Position {
        let noted_every_ms = unflushed_ms / NOTED;
        match self.noted.back() {
            // Earlier needs are unknown.
            None => self.noted.push_back((now_ms, 0)),
            Some((at, _)) if *at + noted_every_ms > now_ms => {}
            Some(_) => self.noted.push_back((now_ms, needed_from)),
        }
        let is_old = |(at, _): &(u64, Position)| *at + unflushed_ms <= now_ms;
        while self.noted.get(1).is_some_and(is_old) {
            self.noted.pop_front();
        }
        let oldest = self.noted.front().map_or(needed_from, |(_, from)| *from);
        oldest.min(needed_from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNFLUSHED_MS: u64 = 10_000;

    #[test]
    fn what_the_database_may_not_have_flushed_is_kept() {
        let mut pins = Pins::default();
        let kept = (0..=40).map(|n| (n * 500, pins.keep(n * 500, 1_000 + n, UNFLUSHED_MS)));
        for (at_ms, from) in kept.collect::<Vec<_>>() {
            let expected = match at_ms.checked_sub(UNFLUSHED_MS) {
                None | Some(0) => 0,
                Some(since_ms) => 1_000 + since_ms / 500,
            };
            assert_eq!(from, expected, "{at_ms}");
        }
        assert!(pins.noted.len() <= 22);
        assert_eq!(
            pins.keep(1_000_000, 2_000, UNFLUSHED_MS),
            1_040,
            "it is not known since when"
        );
        assert_eq!(pins.keep(1_010_000, 2_000, UNFLUSHED_MS), 2_000);
    }

    #[test]
    fn a_need_that_goes_back_is_heeded() {
        let mut pins = Pins::default();
        for (at_ms, needed_from, from) in [(0, 50, 0), (500, 50, 0), (10_500, 40, 40)] {
            assert_eq!(pins.keep(at_ms, needed_from, UNFLUSHED_MS), from, "{at_ms}");
        }
    }
}
