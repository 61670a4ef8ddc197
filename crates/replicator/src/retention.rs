//! The entries that this node's log must keep, for itself and for other members (rule 12). It knows the positions of
//! the last seqnos, reports this node's applied watermark, and computes the first position that the log must keep. This
//! node may need it, and so may members that have reported a lower watermark.
//!
//! In: the ordered entries and the control state. Out: the watermark to report, [`Pin`]s, and positions of seqnos.

mod marks;
mod pins;
mod served;

use std::collections::VecDeque;

use trireme_certification::Seqno;
use trireme_group::{Incarnation, Position};
use trireme_mutants::{Mutant, planted};

use crate::context::Context;
use crate::history::History;
use crate::member_state::NodeState;
use crate::thresholds::Thresholds;
use marks::Marks;
use pins::Pins;
use served::Served;

/// The entries that the log must keep: see [`crate::LogAction::Pin`].
#[derive(Debug, PartialEq)]
pub(crate) struct Pin {
    pub keep_from: Position,
    pub unreported: Vec<(Incarnation, Position)>,
}

#[derive(Debug, Default)]
pub(crate) struct Retention {
    /// Position of each seqno above the low-water mark and the certification floor.
    positions: VecDeque<(Position, Seqno)>,
    /// Positions of seqnos that not all members have reported as applied.
    marks: Marks,
    pins: Pins,
    /// Write-sets that were certified since the last report.
    unreported_write_sets: u32,
    reported_ms: u64,
    /// Outlasts connections, as the log does.
    served: Served,
    /// The time since when all data members have applied what was ordered before this node's log; None: not all have.
    applied_since_ms: Option<u64>,
}

impl Retention {
    /// Starts over for a new connection.
    pub(crate) fn start_over(&mut self) {
        *self = Retention {
            served: std::mem::take(&mut self.served),
            ..Retention::default()
        };
    }

    /// Forgets the log, which begins anew: it has none of the delivered entries.
    pub(crate) fn forget_log(&mut self) {
        self.positions.clear();
        self.marks = Marks::default();
        self.pins = Pins::default();
        self.applied_since_ms = None;
    }

    /// Notes that the entry at `position` took `seqno`, the one after the last.
    pub(crate) fn took(&mut self, position: Position, seqno: Seqno) {
        self.positions.push_back((position, seqno));
        self.marks.took(position, seqno);
    }

    /// Counts a certified write-set.
    pub(crate) fn certified(&mut self) {
        self.unreported_write_sets += 1;
    }

    /// Returns the position of a seqno; None: it is too old.
    pub(crate) fn position_of(&self, seqno: Seqno) -> Option<Position> {
        let found = self.positions.iter().find(|(_, at)| *at == seqno);
        found.map(|(position, _)| *position)
    }

    /// Returns the last seqno at or below a position; `last` is the last of all. Below the remembered positions
    /// everything is released, or this node has not got so far yet, because its control state came from a peer.
    pub(crate) fn seqno_at(&self, position: Position, last: Seqno) -> Seqno {
        let next = self.positions.partition_point(|(at, _)| *at <= position);
        self.positions.get(next).map_or(last, |(_, next)| *next - 1)
    }

    /// Returns true if it is time for [`Self::report`].
    pub(crate) fn report_is_due(&self, context: &Context) -> bool {
        let thresholds = &context.options().thresholds;
        self.unreported_write_sets >= thresholds.report_write_sets
            || context.now_ms() >= self.report_deadline_ms(thresholds)
    }

    /// Returns the applied watermark that this node must report now: nothing that it submits from now on has seen less.
    /// `low`: everything up to it is released. `least_seen`: the least last_seen of own write-sets in flight.
    pub(crate) fn report(
        &mut self,
        context: &Context,
        may_write: bool,
        low: Seqno,
        least_seen: Option<Seqno>,
    ) -> Option<Seqno> {
        (self.unreported_write_sets, self.reported_ms) = (0, context.now_ms());
        if context.abstains() || !may_write {
            return None;
        }
        let watermark = least_seen.map_or(low, |seen| seen.min(low));
        let reported = context.my_state().map_or(0, |state| state.applied);
        (watermark > reported).then_some(watermark)
    }

    /// Returns the latest time of the next report.
    pub(crate) fn report_deadline_ms(&self, thresholds: &Thresholds) -> u64 {
        self.reported_ms + thresholds.report_ms
    }

    /// Returns the entries that the log must keep, for this node, whose database follows the order, for peers that
    /// pull them, and for members that may lack them.
    pub(crate) fn pin(&mut self, context: &Context, low: Seqno) -> Option<Pin> {
        let control = context.control()?;
        let wraps = context.is_arbitrator() && planted(Mutant::ArbitratorLogWraps);
        let mut needed = control.certification.floor().min(low);
        if wraps {
            needed = low;
        }
        let others = match wraps || planted(Mutant::LaggardNotPinned) {
            true => Vec::new(),
            false => control.members.applied_by_others(context.me()),
        };
        let above = |(id, applied): &(Incarnation, Seqno)| (*id, self.marks.above(*applied));
        let unreported = others.iter().map(above).collect();
        self.marks
            .forget_upto(least(&others).unwrap_or(control.seqno()));
        let is_past = |(_, seqno): &(Position, Seqno)| *seqno <= needed;
        while self.positions.front().is_some_and(is_past) {
            self.positions.pop_front();
        }
        let needed_from = match self.positions.front() {
            Some((position, _)) if !planted(Mutant::WaitingNotPinned) => *position,
            _ => control.position,
        };
        let keep_from = match keeps_unflushed(context.is_arbitrator()) {
            true => {
                let unflushed_ms = context.options().thresholds.unflushed_ms;
                self.pins.keep(context.now_ms(), needed_from, unflushed_ms)
            }
            false => needed_from,
        };
        // Also a member that is no joiner pulls, if its log was replaced in place: its log lacks what it acknowledges.
        let may_go_on = |peer, seqno| {
            let member_state = control.members.get(peer);
            member_state.is_some_and(|m| m.state == NodeState::Joiner || m.applied < seqno)
        };
        self.served.keep(may_go_on);
        let pulled_from = self.served.needed_from();
        let pulled_from = pulled_from.filter(|_| !planted(Mutant::BegunTransferNotPinned));
        Some(Pin {
            keep_from: pulled_from.map_or(keep_from, |position| position.min(keep_from)),
            unreported,
        })
    }

    /// Returns true if this node gives a peer the entry with this seqno. Peers get everything from `first` on (a data
    /// member's newest gcache.size bytes, all that an arbitrator keeps), entries that members of the view may lack, and
    /// the rest of a transfer that they have begun. Entries kept beyond these are for this node's own database, for
    /// recovery, or for another joiner.
    pub(crate) fn serves(
        &self,
        context: &Context,
        first: Option<Seqno>,
        (peer, seqno): (Incarnation, Seqno),
    ) -> bool {
        first.is_some_and(|first| first <= seqno)
            || seqno > others_may_lack_above(context)
            || self.served.goes_on(peer, seqno)
    }

    /// Returns true if the log of this node goes back far enough for its vote. An arbitrator may be the only member
    /// left with entries that a data member of the view lacks, or has applied and loses with its machine's power. Its
    /// log may begin at its admission: it has no vote until all data members have applied everything before, and have
    /// had the time to flush it.
    pub(crate) fn is_deep_enough(&mut self, context: &Context, history: &dyn History) -> bool {
        if !context.is_arbitrator() || planted(Mutant::ArbitratorVotesAtOnce) {
            return true;
        }
        if !others_have_applied_before(context, history) {
            return false;
        }
        let since_ms = *self.applied_since_ms.get_or_insert(context.now_ms());
        let wait_ms = context.options().thresholds.unflushed_ms;
        context.now_ms() >= since_ms + wait_ms || planted(Mutant::ArbitratorVotesUnflushed)
    }

    /// Notes that a peer was given entries from this one on. Returns true if the log must be told at once to keep them.
    pub(crate) fn served(&mut self, peer: Incarnation, seqno: Seqno, position: Position) -> bool {
        self.served.note(peer, seqno, position)
    }
}

/// Returns the seqno above which data members of the view, with their state, may lack entries.
fn others_may_lack_above(context: &Context) -> Seqno {
    let Some(control) = context.control() else {
        return 0;
    };
    least(&control.members.applied_by_others(context.me())).unwrap_or(Seqno::MAX)
}

/// Returns the least of applied watermarks.
fn least(applied: &[(Incarnation, Seqno)]) -> Option<Seqno> {
    applied.iter().map(|(_, seqno)| *seqno).min()
}

/// Returns true if all data members of the view have reported as applied what came before the log's first entry.
fn others_have_applied_before(context: &Context, history: &dyn History) -> bool {
    let Some(control) = context.control() else {
        return false;
    };
    let first = history.first_seqno_kept().unwrap_or(control.seqno() + 1);
    // The floor does not wait for a member that is far behind.
    let mut applied = control.members.applied().map(|(_, seqno)| seqno);
    first <= control.certification.floor() + 1 && applied.all(|seqno| first <= seqno + 1)
}

/// Returns true if the log keeps, for a while, the entries that a database has applied and may not have flushed. An
/// arbitrator keeps them for the other members' databases.
fn keeps_unflushed(is_arbitrator: bool) -> bool {
    let drops = |mutant| is_arbitrator && planted(mutant);
    !(planted(Mutant::WaitingNotPinned)
        || drops(Mutant::ArbitratorLogWraps)
        || drops(Mutant::ArbitratorDropsUnflushed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    #[test]
    fn a_position_without_a_seqno_belongs_to_the_one_before() {
        let mut retention = Retention::default();
        for (position, seqno) in [(10, 4), (12, 5), (13, 6)] {
            retention.took(position, seqno);
        }
        let seqnos = [9, 10, 11, 12, 13, 99].map(|position| retention.seqno_at(position, 6));
        assert_eq!(seqnos, [3, 4, 4, 5, 6, 6]);
        assert_eq!(retention.position_of(5), Some(12));
        assert_eq!(retention.position_of(7), None);
        retention.forget_log();
        assert_eq!(retention.position_of(5), None);
        assert_eq!(retention.seqno_at(12, 6), 6);
    }

    #[test]
    fn a_report_is_due_after_a_time_or_after_many_write_sets() {
        let mut context = Context::new(Options::default());
        let thresholds = context.options().thresholds;
        let mut retention = Retention::default();
        context.advance(thresholds.report_ms);
        assert!(retention.report_is_due(&context));
        assert_eq!(retention.report(&context, true, 5, Some(3)), Some(3));
        assert!(!retention.report_is_due(&context), "just now");
        (0..thresholds.report_write_sets).for_each(|_| retention.certified());
        assert!(retention.report_is_due(&context));
        assert_eq!(retention.report(&context, true, 5, Some(9)), Some(5));
        context.advance(2 * thresholds.report_ms);
        assert!(retention.report_is_due(&context));
        assert_eq!(retention.report(&context, false, 5, None), None);
    }
}
