//! The times at which this process heard a majority, lost it, or had one without being primary.
//!
//! In: messages of leaders that had a majority. Out: whether this process may stay primary, and how long it has waited
//! for others.

use trireme_mutants::{Mutant, planted};

use crate::ids::TimeMs;
use crate::reminder::Reminder;

#[derive(Clone, Debug, Hash)]
pub(crate) struct Majority {
    /// Last message of a leader that had a majority; on a leader, the last time at which it heard a majority.
    heard_at: TimeMs,
    /// True if this node has tried to go on alone since then (`pc.ignore_sb`, `pc.ignore_quorum`).
    tried_alone: bool,
    /// When this node last became non-primary because it heard no majority.
    lost_at: Option<TimeMs>,
    /// Since when this node has heard a majority without being primary.
    here_since: TimeMs,
    /// For the log line about missing members.
    reminder: Reminder,
}

impl Majority {
    pub(crate) fn new(now: TimeMs) -> Majority {
        Majority {
            heard_at: now,
            tried_alone: false,
            lost_at: None,
            here_since: now,
            reminder: Reminder::later(now),
        }
    }

    /// True if no majority was heard for this long.
    pub(crate) fn is_silent(&self, now: TimeMs, for_ms: TimeMs) -> bool {
        now >= self.heard_at + for_ms
    }

    /// True if this node lost the majority less than this long ago.
    pub(crate) fn was_just_lost(&self, now: TimeMs, within_ms: TimeMs) -> bool {
        self.lost_at.is_some_and(|at| now < at + within_ms)
    }

    /// True if this node has heard a majority for this long without being primary.
    pub(crate) fn has_waited(&self, now: TimeMs, for_ms: TimeMs) -> bool {
        now >= self.here_since + for_ms
    }

    /// True if the log line about missing members is due.
    pub(crate) fn is_reminder_due(&self, now: TimeMs) -> bool {
        self.reminder.would_be_due(now)
    }

    /// A majority was heard at this time. Earlier times than the last one change nothing.
    pub(crate) fn heard(&mut self, at: TimeMs) {
        self.heard_at = self.heard_at.max(at);
        self.tried_alone = false;
    }

    /// This node tries to go on alone, and waits for the outcome as long as for a majority.
    pub(crate) fn tries_alone(&mut self, now: TimeMs) {
        self.heard_at = now;
        self.tried_alone = true;
    }

    /// True if this node has tried to go on alone since it heard a majority.
    pub(crate) fn has_tried_alone(&self) -> bool {
        self.tried_alone && !planted(Mutant::TriesAloneForEver)
    }

    pub(crate) fn lost(&mut self, now: TimeMs) {
        self.lost_at = Some(now);
    }

    /// No majority is here, or this node is primary: the wait begins again.
    pub(crate) fn waits_from(&mut self, now: TimeMs) {
        self.here_since = now;
    }

    /// The line about missing members was written, or can wait one period.
    pub(crate) fn remind_later(&mut self, now: TimeMs) {
        self.reminder = Reminder::later(now);
    }

    /// Moves the time at which a majority was heard last.
    pub(crate) fn shift_heard(&mut self, shift: impl Fn(&mut TimeMs)) {
        shift(&mut self.heard_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_lasts_from_the_last_word_on() {
        let mut majority = Majority::new(100);
        assert!(!majority.is_silent(149, 50) && majority.is_silent(150, 50));
        majority.heard(120);
        assert!(!majority.is_silent(150, 50));
        majority.heard(110);
        assert!(!majority.is_silent(169, 50) && majority.is_silent(170, 50));
        assert!(!majority.was_just_lost(150, 50));
        majority.lost(150);
        assert!(majority.was_just_lost(199, 50) && !majority.was_just_lost(200, 50));
        assert!(majority.has_waited(150, 50));
        majority.waits_from(150);
        assert!(!majority.has_waited(199, 50));
    }
}
