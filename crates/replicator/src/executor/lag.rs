//! The time that ordered entries wait here until they are committed.
//!
//! In: the seqnos when they are ordered, with the time. Out: the age of the oldest one that is not committed. The age
//! is too high by less than 10 ms, or by 1 % if there are few marks. Memory is bounded.

use std::collections::VecDeque;

use trireme_certification::Seqno;

/// Time that one mark covers, at first.
const STEP_MS: u64 = 10;
/// Maximum of marks: beyond it, every second one is dropped, and each covers twice the time from then on.
const MARKS_MAX: usize = 1_024;

/// The first seqno that was ordered within a step, with the time.
#[derive(Clone, Copy, Debug)]
struct Mark {
    seqno: Seqno,
    at_ms: u64,
}

/// The waits of one connection.
#[derive(Debug)]
pub(crate) struct Lag {
    marks: VecDeque<Mark>,
    step_ms: u64,
}

impl Default for Lag {
    fn default() -> Self {
        Lag {
            marks: VecDeque::new(),
            step_ms: STEP_MS,
        }
    }
}

impl Lag {
    /// Starts over for a new connection.
    pub(crate) fn start_over(&mut self) {
        *self = Lag::default();
    }

    /// Notes that `seqno` was ordered. Everything up to `low` is committed.
    pub(crate) fn ordered(&mut self, seqno: Seqno, now_ms: u64, low: Seqno) {
        let last = self.marks.back();
        if last.is_some_and(|last| seqno <= last.seqno) {
            self.start_over(); // another history
        } else if last.is_some_and(|last| now_ms < last.at_ms + self.step_ms && low < last.seqno) {
            return;
        }
        while self.marks.get(1).is_some_and(|next| next.seqno <= low + 1) {
            self.marks.pop_front();
        }
        if self.marks.len() <= 1 {
            self.step_ms = STEP_MS;
        }
        if self.marks.len() == MARKS_MAX {
            self.step_ms *= 2;
            let mut count = 0;
            self.marks.retain(|_| {
                count += 1;
                count % 2 == 1
            });
        }
        self.marks.push_back(Mark {
            seqno,
            at_ms: now_ms,
        });
    }

    /// Returns the age of the oldest seqno that is ordered and not committed; 0: there is none, or this connection has
    /// not seen it.
    pub(crate) fn age_ms(&self, now_ms: u64, low: Seqno, top: Seqno) -> u64 {
        let next = low + 1;
        let of_next = self.marks.iter().rev().find(|mark| mark.seqno <= next);
        match of_next.filter(|_| next <= top) {
            Some(mark) => now_ms.saturating_sub(mark.at_ms),
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_waits_counts() {
        let mut lag = Lag::default();
        lag.ordered(1, 1_000, 0);
        lag.ordered(2, 1_050, 0);
        lag.ordered(3, 1_055, 0);
        assert_eq!(lag.age_ms(1_100, 0, 3), 100, "1 waits");
        assert_eq!(lag.age_ms(1_100, 1, 3), 50, "2 waits");
        assert_eq!(lag.age_ms(1_100, 2, 3), 50, "3 shares the mark of 2");
        assert_eq!(lag.age_ms(1_100, 3, 3), 0, "nothing waits");
        lag.ordered(4, 1_056, 3);
        assert_eq!(lag.age_ms(1_100, 3, 4), 44, "those before it are done");
        lag.ordered(2, 2_000, 1);
        assert_eq!(lag.age_ms(2_001, 1, 2), 1, "in another history");
    }

    #[test]
    fn however_many_wait_the_marks_are_bounded() {
        let mut lag = Lag::default();
        for seqno in 1..=100_000 {
            lag.ordered(seqno, seqno as u64 * 20, 0);
        }
        assert!(lag.marks.len() <= MARKS_MAX);
        let age = lag.age_ms(2_000_000, 0, 100_000);
        assert_eq!(age, 2_000_000 - 20);
        let (age, exact) = (lag.age_ms(2_000_000, 50_000, 100_000), 1_000_000);
        assert!(age.abs_diff(exact) < exact / 50, "{age} for {exact}");
    }
}
