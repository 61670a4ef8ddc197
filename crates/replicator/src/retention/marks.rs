//! Rough positions of seqnos in the log, back to the least watermark that a member has reported.

use std::collections::VecDeque;

use trireme_certification::Seqno;
use trireme_group::Position;

/// Distance of the remembered seqnos: a member may be any distance behind.
const STEP: Seqno = 64;

/// Positions of some seqnos, oldest first.
#[derive(Debug, Default)]
pub(super) struct Marks {
    marks: VecDeque<(Position, Seqno)>,
}

impl Marks {
    /// Notes that the entry at `position` took `seqno`, the one after the last.
    pub(super) fn took(&mut self, position: Position, seqno: Seqno) {
        let last = self.marks.back();
        if last.is_none_or(|(_, last)| seqno >= last + STEP) {
            self.marks.push_back((position, seqno));
        }
    }

    /// Returns a position such that everything above `seqno` is there or above; 0 if none is remembered.
    pub(super) fn above(&self, seqno: Seqno) -> Position {
        let next = self.marks.partition_point(|(_, at)| *at <= seqno + 1);
        let mark = next.checked_sub(1).and_then(|mark| self.marks.get(mark));
        mark.map_or(0, |(position, _)| *position)
    }

    /// Forgets the marks that [`Self::above`] of this seqno, or of a higher one, does not need.
    pub(super) fn forget_upto(&mut self, seqno: Seqno) {
        while (self.marks.get(1)).is_some_and(|(_, next)| *next <= seqno + 1) {
            self.marks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_a_seqno_is_never_below_its_mark() {
        let mut marks = Marks::default();
        assert_eq!(marks.above(7), 0);
        // Every third position takes no seqno.
        let position = |seqno: Seqno| (seqno + seqno / 2) as Position;
        (101..=1_000).for_each(|seqno| marks.took(position(seqno), seqno));
        assert_eq!((marks.above(50), marks.above(99)), (0, 0), "from before");
        for seqno in 100..=999 {
            let (least, exact) = (position(seqno + 1 - STEP), position(seqno + 1));
            let found = marks.above(seqno);
            assert!(found > least && found <= exact, "{seqno}: {found}");
        }
        let before = marks.above(500);
        marks.forget_upto(500);
        assert_eq!(marks.above(500), before);
        assert_eq!(marks.above(300), 0);
        assert!(marks.marks.len() <= 500 / STEP as usize + 2);
    }
}
