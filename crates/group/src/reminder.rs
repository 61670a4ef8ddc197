//! A log line that repeats every 10 s as long as its cause lasts.

use crate::ids::TimeMs;

/// The time at which the line was written last.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub struct Reminder {
    pub(crate) told_at: Option<TimeMs>,
}

impl Reminder {
    /// Shortest time between two lines.
    pub const PERIOD_MS: TimeMs = 10_000;

    /// A reminder whose first line waits one period.
    pub(crate) fn later(now: TimeMs) -> Reminder {
        Reminder { told_at: Some(now) }
    }

    /// Returns true if the line is due, and notes it as written.
    pub fn is_due(&mut self, now: TimeMs) -> bool {
        let due = self.would_be_due(now);
        if due {
            self.told_at = Some(now);
        }
        due
    }

    pub(crate) fn would_be_due(&self, now: TimeMs) -> bool {
        self.told_at.is_none_or(|at| now >= at + Self::PERIOD_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_at_once_and_every_ten_seconds() {
        let mut reminder = Reminder::default();
        let mut due = [5, 6, 10_004, 10_005, 10_006, 40_000, 40_001].to_vec();
        due.retain(|now| reminder.is_due(*now));
        assert_eq!(due, [5, 10_005, 40_000]);
        assert!(!Reminder::later(5).is_due(10_004) && Reminder::later(5).is_due(10_005));
    }
}
