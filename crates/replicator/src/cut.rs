//! Reports of what this node has applied: they purge the certification index, and the log.

use std::collections::VecDeque;

use trireme_group::Position;
use trireme_mutants::{Mutant, planted};

use crate::action::Action;
use crate::history::History;
use crate::message::Message;
use crate::replicator::{Replicator, Stage};
use crate::submissions::Sent;
use crate::thresholds::Thresholds;

/// So often within that time it is noted what the log had to keep.
const NOTED: u64 = 20;

/// When the next report is due.
#[derive(Debug, Default)]
pub(crate) struct CutReports {
    write_sets: u32,
    last_ms: u64,
}

impl CutReports {
    /// A write-set was certified.
    pub(crate) fn write_set(&mut self) {
        self.write_sets += 1;
    }

    /// When a report is due at the latest.
    pub(crate) fn deadline_ms(&self, thresholds: &Thresholds) -> u64 {
        self.last_ms + thresholds.report_ms
    }

    fn is_due(&self, now_ms: u64, thresholds: &Thresholds) -> bool {
        self.write_sets >= thresholds.report_write_sets || now_ms >= self.deadline_ms(thresholds)
    }
}

/// First positions that the log had to keep for what was not applied, of late: (ms, position).
#[derive(Debug, Default)]
pub(crate) struct Pins {
    noted: VecDeque<(u64, Position)>,
}

impl Pins {
    /// From here on entries are needed now; gives from where on they have to be kept.
    fn keep(&mut self, now_ms: u64, needed_from: Position, unflushed_ms: u64) -> Position {
        let noted_every_ms = unflushed_ms / NOTED;
        match self.noted.back() {
            // What was applied before is not known.
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

impl Replicator {
    /// Submits Cut when it is due. Its value: nothing that this node submits from now on has seen
    /// less.
    pub(crate) fn report_cut(&mut self) {
        if !self
            .cuts
            .is_due(self.context.now_ms(), &self.context.options().thresholds)
        {
            return;
        }
        (self.cuts.write_sets, self.cuts.last_ms) = (0, self.context.now_ms());
        if self.context.abstains() || !self.may_write() {
            return;
        }
        let low = self.order.low();
        let cut = self
            .submissions
            .least_seen()
            .map_or(low, |seen| seen.min(low));
        if cut > self.context.my_state().map_or(0, |seat| seat.cut) {
            self.submit_once(Sent::Cut, &Message::Cut(cut));
        }
    }

    /// Tells the log what this node still needs, and what the others may lack (rule 12).
    pub(crate) fn pin_log(&mut self) {
        let Some(control) = self.context.control() else {
            return;
        };
        if !matches!(self.stage, Stage::Active) {
            return; // the database may follow from the own log
        }
        let wraps = self.context.is_arbitrator() && planted(Mutant::ArbitratorLogWraps);
        let mut needed = control.certification.floor().min(self.order.low());
        if wraps {
            needed = self.order.low();
        }
        let reported = match wraps || planted(Mutant::LaggardNotPinned) {
            true => Vec::new(),
            false => control.reported(),
        };
        let others = reported
            .into_iter()
            .filter(|(id, _)| *id != self.context.me());
        let unreported: Vec<_> = (others.clone())
            .map(|(id, cut)| (id, self.marks.above(cut)))
            .collect();
        let least = others.map(|(_, cut)| cut).min().unwrap_or(control.seqno());
        self.marks.forget_upto(least);
        while self
            .positions
            .front()
            .is_some_and(|(_, seqno)| *seqno <= needed)
        {
            self.positions.pop_front();
        }
        let needed_from = match self.positions.front() {
            Some((position, _)) if !planted(Mutant::WaitingNotPinned) => *position,
            _ => control.position,
        };
        let keep_from = match self.context.is_arbitrator() {
            true => needed_from, // it has no database
            false if planted(Mutant::WaitingNotPinned) => needed_from,
            false => {
                let unflushed_ms = self.context.options().thresholds.unflushed_ms;
                self.pins
                    .keep(self.context.now_ms(), needed_from, unflushed_ms)
            }
        };
        self.out.push(Action::PinLog {
            keep_from,
            unreported,
        });
    }

    /// An arbitrator may be the only one left to have what a data member of the view lacks (rule 12). A log that
    /// begins at its admission lacks that, too, until they have reported all that came before: no vote yet.
    pub(crate) fn log_is_deep_enough(&self, history: &dyn History) -> bool {
        let Some(control) = self.context.control() else {
            return false;
        };
        if !self.context.is_arbitrator() || planted(Mutant::ArbitratorVotesAtOnce) {
            return true;
        }
        let first = history.first_seqno().unwrap_or(control.seqno() + 1);
        // The floor does not wait for who is far behind.
        let mut reported = control.reported().into_iter().map(|(_, cut)| cut);
        first <= control.certification.floor() + 1 && reported.all(|cut| first <= cut + 1)
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
