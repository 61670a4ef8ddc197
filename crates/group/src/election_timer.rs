//! When this member seeks leadership (rule 2): how long a leader's silence is borne, and how attempts follow one
//! another.
//!
//! Comes in: that the leader was heard, that attempts failed, to whom one deferred. Goes out: when to stand. Holds: usual
//! silences of a leader do not lead to elections, and two candidates seldom stand at once.

use crate::config::Config;
use crate::ids::{Incarnation, TimeMs};
use crate::round_trips::STALE_MS;

/// Of the longest silence, one part of so many is forgotten with each heartbeat.
const FORGOTTEN: TimeMs = 128;
/// Candidates of different rank start this far apart.
pub(crate) const STAGGER_MS: TimeMs = 60;
/// The first of them starts so much later than its patience ends: the leader's last word may have reached the others
/// a little later than this one.
const FIRST_MS: TimeMs = 20;
/// An attempt that has not succeeded by then has failed.
pub(crate) const ATTEMPT_MS: TimeMs = 400;

#[derive(Clone, Debug, Hash)]
pub(crate) struct ElectionTimer {
    /// Last word of the promised ballot's leader (or candidate).
    heard_at: TimeMs,
    /// The longest silence that leaders have broken of late.
    silence_ms: TimeMs,
    /// No attempt before this time.
    next_at: TimeMs,
    failed: u32,
    /// This member's last attempt deferred to this candidate's longer log, and has not heard it lead.
    deferred_to: Option<Incarnation>,
    /// When a leader last handed this member its leadership.
    offered_at: Option<TimeMs>,
}

impl ElectionTimer {
    pub(crate) fn new(now: TimeMs) -> ElectionTimer {
        ElectionTimer {
            heard_at: now,
            silence_ms: 0,
            next_at: 0,
            failed: 0,
            deferred_to: None,
            offered_at: None,
        }
    }

    /// A leader may be silent for so long before it is missed.
    pub(crate) fn patience_ms(&self, config: &Config) -> TimeMs {
        let usual_ms = config.leader_timeout_ms;
        (2 * self.silence_ms).clamp(usual_ms, 2 * usual_ms)
    }

    /// The leader has been silent for too long.
    pub(crate) fn is_missed(&self, now: TimeMs, config: &Config) -> bool {
        now >= self.heard_at + self.patience_ms(config)
    }

    /// When a member of this rank stands, if the leader, which may be known to be gone, is not heard until then.
    pub(crate) fn stands_at(&self, config: &Config, is_gone: bool, rank: TimeMs) -> TimeMs {
        let patience_ms = match is_gone {
            true => 0,
            false => self.patience_ms(config) + FIRST_MS,
        };
        let missed_at = self.heard_at + patience_ms + rank * STAGGER_MS;
        missed_at.max(self.next_at)
    }

    /// An attempt is given so long.
    pub(crate) fn attempt_ms(&self) -> TimeMs {
        ATTEMPT_MS << self.failed.min(4)
    }

    /// The next attempt is to do without this process's promise.
    pub(crate) fn deferred_to(&self) -> Option<Incarnation> {
        self.deferred_to
    }

    /// A leader has handed this member its leadership a moment ago.
    pub(crate) fn was_offered(&self, now: TimeMs) -> bool {
        self.offered_at.is_some_and(|at| now < at + STALE_MS)
    }

    /// A ballot is promised: its candidate gets time.
    pub(crate) fn promised(&mut self, now: TimeMs) {
        self.heard_at = now;
    }

    /// The leader speaks again, in the same ballot.
    pub(crate) fn silence_broken(&mut self, now: TimeMs, config: &Config) {
        if config.measures {
            let silent_ms = now.saturating_sub(self.heard_at);
            self.silence_ms = self.silence_ms.max(silent_ms.min(config.leader_timeout_ms));
        }
    }

    /// With every heartbeat.
    pub(crate) fn forget_silence(&mut self) {
        self.silence_ms -= self.silence_ms.div_ceil(FORGOTTEN);
    }

    /// The leader is obeyed. Only the word of a leader counts, not that of a process that once sought it.
    pub(crate) fn obeys(&mut self, now: TimeMs) {
        self.heard_at = now;
        self.failed = 0;
        self.deferred_to = None;
    }

    /// An attempt of a member of this rank has failed.
    pub(crate) fn gave_up(&mut self, now: TimeMs, rank: TimeMs) {
        self.deferred_to = None;
        self.failed = (self.failed + 1).min(6);
        self.next_at = now + (rank + 1) * STAGGER_MS + (50 << self.failed);
    }

    /// The owner of a longer log is asked to lead instead.
    pub(crate) fn defers_to(&mut self, owner: Incarnation, now: TimeMs) {
        self.next_at = now + ATTEMPT_MS;
        self.deferred_to = Some(owner);
    }

    /// This member is asked to lead; `by_leader`: by the one that hands its leadership over.
    pub(crate) fn offered(&mut self, now: TimeMs, by_leader: bool) {
        self.offered_at = by_leader.then_some(now);
    }

    /// This member leads.
    pub(crate) fn leads(&mut self) {
        self.failed = 0;
    }

    /// It was elected.
    pub(crate) fn elected(&mut self) {
        self.deferred_to = None;
    }

    /// Moves the leader's last word.
    pub(crate) fn shift_heard(&mut self, shift: impl Fn(&mut TimeMs)) {
        shift(&mut self.heard_at);
    }

    /// Another clock, for the model check.
    #[cfg(feature = "model")]
    pub(crate) fn rebase(&mut self, old: TimeMs, now: TimeMs) {
        self.next_at = now + self.next_at.saturating_sub(old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Member;

    #[test]
    fn a_leader_that_is_often_silent_is_given_more_time_and_that_is_forgotten() {
        let config = Config::new(Member::default());
        let timeout_ms = config.leader_timeout_ms;
        let mut timer = ElectionTimer::new(0);
        assert!(timer.is_missed(timeout_ms, &config));
        timer.silence_broken(timeout_ms, &config);
        timer.obeys(timeout_ms);
        assert!(!timer.is_missed(2 * timeout_ms, &config));
        assert!(timer.is_missed(3 * timeout_ms, &config));
        (0..1_000).for_each(|_| timer.forget_silence());
        assert!(timer.is_missed(2 * timeout_ms, &config));
    }

    #[test]
    fn attempts_follow_one_another_by_rank_and_ever_later() {
        let config = Config::new(Member::default());
        let mut timer = ElectionTimer::new(0);
        let first = timer.stands_at(&config, false, 0);
        assert_eq!(timer.stands_at(&config, false, 1), first + STAGGER_MS);
        assert_eq!(
            timer.stands_at(&config, true, 0),
            0,
            "it is known to be gone"
        );
        timer.gave_up(1_000, 0);
        let second = timer.stands_at(&config, true, 0);
        timer.gave_up(1_000, 0);
        assert!(1_000 < second && second < timer.stands_at(&config, true, 0));
    }
}
