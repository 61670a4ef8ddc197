//! How long a candidate for a forced view waits for promises (rule 11).
//!
//! A member that has not promised may hold a longer log, which the forced view would drop. So time in which the others
//! could not answer counts for nothing: the time until the own promise was on disk, and a pause of this process. A
//! member that was heard just before may be writing its promise to a slow disk.

use crate::ids::TimeMs;

/// The wait for members that say nothing.
const SILENT_MS: TimeMs = 300;

/// The wait for a member that was heard when it was asked, or since: its disk may need long for two flushes.
const HEARD_MS: TimeMs = 2_000;

/// The wait of one candidacy. Only ticks move it, because a process that was paused reads its input first.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct ForcedWait {
    /// A tick found the own promise on disk, so the others are asked; None: not yet.
    asked_at: Option<TimeMs>,
    over_at: Option<TimeMs>,
}

impl ForcedWait {
    /// The longest wait in milliseconds.
    #[cfg(feature = "model")]
    pub(crate) const LONGEST_MS: TimeMs = HEARD_MS;

    /// Begins, because the others are asked; without effect if it has begun.
    pub(crate) fn begin(&mut self, asked_at: TimeMs) {
        self.asked_at.get_or_insert(asked_at);
    }

    /// Returns the time since the others were asked.
    pub(crate) fn since_asked_ms(&self, now: TimeMs) -> TimeMs {
        self.asked_at.map_or(0, |at| now.saturating_sub(at))
    }

    /// Notes whether the wait is over. `hears_missing`: a member that has not promised was heard when it was asked, or
    /// since.
    pub(crate) fn tick(&mut self, now: TimeMs, hears_missing: bool) {
        let wait_ms = if hears_missing { HEARD_MS } else { SILENT_MS };
        if self.asked_at.is_some_and(|at| now >= at + wait_ms) {
            self.over_at.get_or_insert(now);
        }
    }

    /// Returns the time at which the wait was over; None: it is not.
    pub(crate) fn over_at(&self) -> Option<TimeMs> {
        self.over_at
    }

    /// Moves the stamps, because this process did not run for a time.
    pub(crate) fn shift(&mut self, shift: impl Fn(&mut TimeMs)) {
        self.asked_at.iter_mut().for_each(&shift);
        self.over_at.iter_mut().for_each(shift);
    }
}
