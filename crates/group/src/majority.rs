//! Since when a majority has been heard, or missed.
//!
//! Comes in: words of leaders that had a majority. Goes out: whether this process may still believe that it is primary, and how
//! long others have been waited for.

use crate::ids::TimeMs;
use crate::reminder::Reminder;

#[derive(Clone, Debug, Hash)]
pub(crate) struct Majority {
    /// Last word of a leader that had one.
    heard_at: TimeMs,
    /// When this node last ceased to be primary for want of one.
    lost_at: Option<TimeMs>,
    /// Since when one has been here without being primary.
    here_since: TimeMs,
    /// Of who is missing.
    reminder: Reminder,
}

impl Majority {
    pub(crate) fn new(now: TimeMs) -> Majority {
        Majority {
            heard_at: now,
            lost_at: None,
            here_since: now,
            reminder: Reminder::later(now),
        }
    }

    /// None was heard for so long.
    pub(crate) fn is_silent(&self, now: TimeMs, for_ms: TimeMs) -> bool {
        now >= self.heard_at + for_ms
    }

    /// It was lost less than so long ago.
    pub(crate) fn was_just_lost(&self, now: TimeMs, within_ms: TimeMs) -> bool {
        self.lost_at.is_some_and(|at| now < at + within_ms)
    }

    /// One has been here for so long, without being primary.
    pub(crate) fn has_waited(&self, now: TimeMs, for_ms: TimeMs) -> bool {
        now >= self.here_since + for_ms
    }

    /// It is time to say who is missing.
    pub(crate) fn is_reminder_due(&self, now: TimeMs) -> bool {
        self.reminder.would_be_due(now)
    }

    pub(crate) fn heard(&mut self, now: TimeMs) {
        self.heard_at = now;
    }

    pub(crate) fn lost(&mut self, now: TimeMs) {
        self.lost_at = Some(now);
    }

    /// None is here, or one that is primary.
    pub(crate) fn waits_from(&mut self, now: TimeMs) {
        self.here_since = now;
    }

    /// Who is missing was said, or need not be said for a while.
    pub(crate) fn remind_later(&mut self, now: TimeMs) {
        self.reminder = Reminder::later(now);
    }

    /// Moves the last word.
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
        assert!(!majority.was_just_lost(150, 50));
        majority.lost(150);
        assert!(majority.was_just_lost(199, 50) && !majority.was_just_lost(200, 50));
        assert!(majority.has_waited(150, 50));
        majority.waits_from(150);
        assert!(!majority.has_waited(199, 50));
    }
}
