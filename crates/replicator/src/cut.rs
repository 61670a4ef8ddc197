//! Reports of what this node has applied: they purge the certification index, and the log.

use trireme_mutants::{Mutant, planted};

use crate::action::Action;
use crate::control::NodeState;
use crate::message::Message;
use crate::replicator::{Replicator, Stage};
use crate::submissions::Sent;

/// A report is due after so many write-sets (contract trap 38) ...
const WRITE_SETS: u32 = 128;
/// ... or after so long, if there is anything new.
const PERIOD_MS: u64 = 1000;

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

    pub(crate) fn deadline_ms(&self) -> u64 {
        self.last_ms + PERIOD_MS
    }
}

impl Replicator {
    /// Submits Cut when it is due. Its value: nothing that this node submits from now on has seen
    /// less.
    pub(crate) fn report_cut(&mut self) {
        let due = self.cuts.write_sets >= WRITE_SETS || self.now_ms >= self.cuts.deadline_ms();
        if !due {
            return;
        }
        (self.cuts.write_sets, self.cuts.last_ms) = (0, self.now_ms);
        let counts = self.my_state().is_some_and(|s| s != NodeState::Joiner);
        if !counts || self.abstains() || !matches!(self.stage, Stage::Active) {
            return;
        }
        let low = self.order.low();
        let cut = self
            .submissions
            .least_seen()
            .map_or(low, |seen| seen.min(low));
        let reported = self
            .control
            .as_ref()
            .and_then(|c| c.members.get(&self.me))
            .map_or(0, |m| m.cut);
        if cut > reported && self.primary && !self.leaving {
            self.submit_once(Sent::Cut, &Message::Cut(cut));
        }
    }

    /// Tells the log what this node still needs (rule 12). An arbitrator needs nothing for itself, and
    /// may be the only one left to have what another has not received: that lies above the floor.
    pub(crate) fn pin_log(&mut self) {
        let Some(control) = &self.control else { return };
        let mut needed = control.certification.floor().min(self.order.low());
        if self.is_arbitrator() && planted(Mutant::ArbitratorLogWraps) {
            needed = self.order.low();
        }
        while self
            .positions
            .front()
            .is_some_and(|(_, seqno)| *seqno <= needed)
        {
            self.positions.pop_front();
        }
        let keep_from = self
            .positions
            .front()
            .map_or(control.position, |(position, _)| *position);
        self.out.push(Action::PinLog { keep_from });
    }
}
