//! The positions of seqnos, for the last entries.

use std::collections::VecDeque;

use trireme_certification::Seqno;
use trireme_group::Position;

/// Number of remembered runs: more than a leader without a majority orders.
const REMEMBERED: usize = 1024;

/// Runs of positions that each took a seqno: the first of each, oldest first. Part of the control state: an override's
/// fork point is given as a position (rule 11).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeqnoRuns {
    /// First position and seqno of each run.
    pub(crate) first: VecDeque<(Position, Seqno)>,
}

impl SeqnoRuns {
    /// Notes that the entry at this position took this seqno, the one after the last.
    pub(crate) fn took(&mut self, position: Position, seqno: Seqno) {
        let goes_on = |(at, first): &(Position, Seqno)| {
            i64::try_from(position - at).is_ok_and(|distance| distance == seqno - first)
        };
        if self.first.back().is_some_and(goes_on) {
            return;
        }
        self.first.push_back((position, seqno));
        if self.first.len() > REMEMBERED {
            self.first.pop_front();
        }
    }

    /// Returns the first run that does not follow the one before it, or begins above `position` or `seqno`.
    pub(crate) fn misplaced(&self, position: Position, seqno: Seqno) -> Option<(Position, Seqno)> {
        let ends = self.first.iter().skip(1).copied();
        let ends = ends.chain([(position.saturating_add(1), seqno.saturating_add(1))]);
        let mut runs = self.first.iter().copied().zip(ends);
        let is_misplaced =
            |(at, end): &((Position, Seqno), (Position, Seqno))| at.0 >= end.0 || at.1 >= end.1;
        runs.find(is_misplaced).map(|(run, _)| run)
    }

    /// Returns the last seqno at or below a position, or a lower one if that is not remembered. `last`: the last of
    /// all.
    pub(crate) fn last_upto(&self, position: Position, last: Seqno) -> Seqno {
        let next = self.first.partition_point(|(at, _)| *at <= position);
        let end = self.first.get(next).map_or(last, |(_, seqno)| seqno - 1);
        match next.checked_sub(1).and_then(|run| self.first.get(run)) {
            Some((at, first)) => {
                let distance = i64::try_from(position - at).unwrap_or(i64::MAX);
                first.saturating_add(distance).min(end)
            }
            None if self.first.len() < REMEMBERED => end,
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_without_a_seqno_belong_to_the_one_before() {
        let mut runs = SeqnoRuns::default();
        assert_eq!(runs.last_upto(7, 40), 40, "nothing since the founding");
        for (position, seqno) in [(10, 41), (11, 42), (12, 43), (15, 44), (16, 45), (20, 46)] {
            runs.took(position, seqno);
        }
        assert_eq!(runs.first, [(10, 41), (15, 44), (20, 46)]);
        let expected = [
            (9, 40),
            (10, 41),
            (12, 43),
            (13, 43),
            (14, 43),
            (15, 44),
            (19, 45),
            (20, 46),
            (99, 46),
        ];
        for (position, seqno) in expected {
            assert_eq!(runs.last_upto(position, 46), seqno, "{position}");
        }
    }

    #[test]
    fn what_is_not_remembered_is_taken_for_lower() {
        let mut runs = SeqnoRuns::default();
        for n in 1..=2_000_i64 {
            runs.took(n as Position * 2, n);
        }
        assert_eq!(runs.first.len(), REMEMBERED);
        assert_eq!(runs.last_upto(4_000, 2_000), 2_000);
        assert_eq!(runs.last_upto(3_999, 2_000), 1_999);
        assert_eq!(runs.last_upto(1_000, 2_000), 0);
    }
}
